set encoding utf8
set terminal svg size 1035,486 font 'sans-serif,13' noenhanced background '#ffffff'
set output './it.svg'
set style line 1 lc rgb '#0072B2' lw 1.8 dt 1 pt 7 ps 0.5
set style line 11 lc rgb '#0072B2' lw 1.5 dt (16,8) pt 7 ps 0.5
set style line 2 lc rgb '#D55E00' lw 1.8 dt 1 pt 5 ps 0.5
set style line 12 lc rgb '#D55E00' lw 1.5 dt (16,8) pt 5 ps 0.5
set style line 3 lc rgb '#009E73' lw 1.8 dt 1 pt 9 ps 0.5
set style line 13 lc rgb '#009E73' lw 1.5 dt (16,8) pt 9 ps 0.5
set style line 4 lc rgb '#CC79A7' lw 1.8 dt 1 pt 13 ps 0.5
set style line 14 lc rgb '#CC79A7' lw 1.5 dt (16,8) pt 13 ps 0.5
set style line 5 lc rgb '#E69F00' lw 1.8 dt 1 pt 11 ps 0.5
set style line 15 lc rgb '#E69F00' lw 1.5 dt (16,8) pt 11 ps 0.5
set style line 6 lc rgb '#56B4E9' lw 1.8 dt 1 pt 6 ps 0.5
set style line 16 lc rgb '#56B4E9' lw 1.5 dt (16,8) pt 6 ps 0.5
set style line 7 lc rgb '#000000' lw 1.8 dt 1 pt 4 ps 0.5
set style line 17 lc rgb '#000000' lw 1.5 dt (16,8) pt 4 ps 0.5
set style line 20 lc rgb '#e2e2e2' lw 0.7 dt 1
set style line 21 lc rgb '#606060' lw 0.8 dt 1
set border 3 ls 21
set grid ls 20
set tics nomirror out scale 0.5
set xtics offset 0, 0.3
set xlabel offset 0, 0.6
set title offset 0, -0.4
set format '%g'
unset key
set palette defined (0 '#440154', 1 '#482878', 2 '#3e4a89', 3 '#31688e', 4 '#26828e', 5 '#1f9e89', 6 '#35b779', 7 '#6dcd59', 8 '#b4de2c', 9 '#fde725')
$c0l0 << EOD
# 'full, p50'
1 0.0625
2 0.125
4 0.25
8 0.5
16 1
EOD
$c0l1 << EOD
# 'full, p99'
1 0.15625
2 0.3125
4 NaN
8 1.25
16 2.5
EOD
$c1l0 << EOD
# 'full, p50'
1 0.0625
2 0.125
4 0.25
8 0.5
16 1
EOD
$c1l1 << EOD
# 'full, p99'
1 0.15625
2 0.3125
4 NaN
8 1.25
16 2.5
EOD
set multiplot
set label 910 'The demo model on its own text' at screen 0.01739, screen 0.94650 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01739, screen 0.89712 left  tc rgb '#606060'
set arrow 201 from screen 0.01932, screen 0.04527 to screen 0.04831, screen 0.04527 nohead ls 1
set label 1 'full, p50' at screen 0.05411, screen 0.04527 left
set arrow 202 from screen 0.13949, screen 0.04527 to screen 0.16848, screen 0.04527 nohead ls 11
set label 2 'full, p99' at screen 0.17428, screen 0.04527 left
set arrow 203 from screen 0.25966, screen 0.04527 to screen 0.28865, screen 0.04527 nohead lc rgb '#404040' lw 1.2 dt '-'
set label 3 'limit' at screen 0.29444, screen 0.04527 left
set lmargin at screen 0.09179
set rmargin at screen 0.49758
set tmargin at screen 0.79835
set bmargin at screen 0.18107
set title 'time to the first token'
set xlabel 'requests a second'
set ylabel 'seconds'
unset logscale
set yrange [*:*]
set xrange [0:16]
set xtics 5
set ytics 0.5
set yrange [0:2.575]
plot $c0l0 using 1:2 with lines ls 1, \
    $c0l1 using 1:2 with lines ls 11
unset label
unset arrow
unset object
set lmargin at screen 0.56039
set rmargin at screen 0.96618
set tmargin at screen 0.79835
set bmargin at screen 0.18107
set title 'time to the first token'
set xlabel 'requests a second'
set ylabel ''
unset logscale
set yrange [*:*]
set xrange [0:16]
set xtics 5
set ytics 0.5
set logscale y 10
set yrange [0.0568182:2.75]
set ytics ('0.1' 0.1, '0.2' 0.2, '0.5' 0.5, '1' 1, '2' 2)
plot $c1l0 using 1:2 with lines ls 1, \
    $c1l1 using 1:2 with lines ls 11, \
    1.5 with lines lc rgb '#404040' lw 1.2 dt '-'
unset label
unset arrow
unset object
unset multiplot
