# Draws inart.csv: how much less time InArt takes, by workers; rates and bounds, by roots.
set datafile separator ','
set terminal svg size 900,480 font 'Helvetica,12' background 'white'
set key at screen 0.5,0.02 center bottom horizontal maxrows 2 maxcols 4 samplen 2 width -1
set grid ytics linecolor '#dddddd'
policies = 'inart r-inart grid atp atp-past lbmm direct'
colours = "#0077aa #33aa88 #883399 #000000 #cc3333 #dd8800 #888888"
panel(links) = links eq 'equal' ? 'links of 20' : 'links of 10 to 30'
$published << END
10,48
20,54
30,57
40,53
50,49
END

# x, median, least and most of one policy: rows of the CSV where column `fixed` has `value`.
rows(links, policy, x, fixed, value, at) = sprintf("< awk -F, '$1 == \"%s\" && $4 == \"%s\" && \
	$%d == %d { print $%d \",\" $%d \",\" $%d \",\" $%d }' inart.csv | sort -n", \
	links, policy, fixed, value, x, at, at + 2, at + 3)

set output 'inart-workers.svg'
set xlabel 'workers'
set xrange [6:54]
set yrange [-20:100]
set ylabel 'less time by InArt, percent'
set key
set multiplot layout 1,2 margins 0.08,0.98,0.31,0.92 spacing 0.1,0
do for [links in 'mixed equal'] {
	set title panel(links)
	plot for [i=2:7] rows(links, word(policies, i), 2, 3, 4, 13) \
		using ($1+0.5*(i-4.5)):2:3:4 with yerrorlines pointtype 7 pointsize 0.5 \
		linecolor rgb word(colours, i) title word(policies, i), \
		$published with linespoints dashtype 2 pointtype 2 linecolor rgb '#333333' \
		title 'published, ATP'
	unset key
}
unset multiplot

set output 'inart-roots.svg'
set xlabel 'roots'
set xrange [1.6:6.4]
set xtics 1
set yrange [0:13]
set ylabel 'rate of a worker, Mbit/s (40 workers)'
set key
set multiplot layout 1,2 margins 0.08,0.98,0.31,0.92 spacing 0.1,0
do for [links in 'mixed equal'] {
	set title panel(links)
	plot for [i=1:7] rows(links, word(policies, i), 3, 2, 40, 5) \
		using ($1+0.04*(i-4)):2:3:4 with yerrorlines pointtype 7 pointsize 0.5 \
		linecolor rgb word(colours, i) title word(policies, i), \
		rows(links, 'inart', 3, 2, 40, 9) using 1:2 with lines dashtype 2 \
		linecolor rgb '#0077aa' title 'bound of inart'
	unset key
}
unset multiplot
set output
