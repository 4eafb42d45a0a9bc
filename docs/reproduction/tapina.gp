# Draws tapina.csv: how much less TAPINA-MG (and TAPINA) have than each other policy.
set datafile separator ','
set terminal svg size 900,660 font 'Helvetica,12' background 'white'
set key at screen 0.5,0.02 center bottom horizontal maxrows 2 maxcols 4 samplen 2 width -1
set grid ytics linecolor '#dddddd'
set logscale x 2
set xtics (5, 10, 20, 40)
set xrange [4.4:47]
networks = 'tapina fat-tree-4 fat-tree-6 fat-tree-8'
rivals = 'none random tor k-median soar traffic'
colours = "#888888 #cc3333 #dd8800 #0077aa #883399 #000000"
set xlabel 'jobs'

# Median, and least to most, of one policy: rows of the CSV.
rows(network, measure, policy, at) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"uniform\" && \
	$6 == \"%s\" && $7 == \"%s\" { print $3 \",\" $%d \",\" $%d \",\" $%d }' tapina.csv", \
	network, policy, measure, at, at + 2, at + 3)

panel(network) = network eq 'tapina' ? "the authors' network" : \
	sprintf('fat-tree of k = %s', network[10:])

set macros
curves = "for [i=1:words(rivals)] rows(word(networks, n), measure, word(rivals, i), at) \
	using ($1*(1+0.025*(i-3.5))):2:3:4 with yerrorlines linecolor rgb word(colours, i) \
	pointtype 7 pointsize 0.5 title word(rivals, i), \
	published with lines dashtype 2 linecolor rgb '#333333' title 'published'"

begin = "set key; set multiplot layout 2,2 margins 0.08,0.98,0.19,0.94 spacing 0.1,0.16"
panels = "set title panel(word(networks, n)); plot @curves; unset key"

set output 'tapina-traffic.svg'
measure = 'bytes'; at = 12; published = 20.0
set ylabel 'less traffic by TAPINA, percent'
@begin
do for [n=1:4] { @panels }
unset multiplot

set output 'tapina-mg-traffic.svg'
at = 16; published = 22.5
set ylabel 'less traffic by TAPINA-MG, percent'
@begin
do for [n=1:4] { @panels }
unset multiplot

set output 'tapina-mg-fullest.svg'
measure = 'fullest'; published = 38.9
set ylabel 'less on the fullest link, percent'
@begin
do for [n=1:4] { @panels }
unset multiplot

set output 'tapina-mg-completion.svg'
measure = 'completion'; published = 96.0
set ylabel 'less completion time, percent'
@begin
do for [n=1:4] { @panels }
unset multiplot
set output
