set encoding utf8
set terminal svg size 960,540 font 'sans-serif,13' noenhanced background '#ffffff'
set output './it.svg'
set style line 1 lc rgb '#0072B2' lw 1.8 dt 1 pt 7 ps 0.5
set style line 11 lc rgb '#0072B2' lw 1.3 dt (16,8) pt 7 ps 0.5
set style line 2 lc rgb '#D55E00' lw 1.8 dt 1 pt 5 ps 0.5
set style line 12 lc rgb '#D55E00' lw 1.3 dt (16,8) pt 5 ps 0.5
set style line 3 lc rgb '#009E73' lw 1.8 dt 1 pt 9 ps 0.5
set style line 13 lc rgb '#009E73' lw 1.3 dt (16,8) pt 9 ps 0.5
set style line 4 lc rgb '#CC79A7' lw 1.8 dt 1 pt 13 ps 0.5
set style line 14 lc rgb '#CC79A7' lw 1.3 dt (16,8) pt 13 ps 0.5
set style line 5 lc rgb '#E69F00' lw 1.8 dt 1 pt 11 ps 0.5
set style line 15 lc rgb '#E69F00' lw 1.3 dt (16,8) pt 11 ps 0.5
set style line 6 lc rgb '#56B4E9' lw 1.8 dt 1 pt 6 ps 0.5
set style line 16 lc rgb '#56B4E9' lw 1.3 dt (16,8) pt 6 ps 0.5
set style line 7 lc rgb '#000000' lw 1.8 dt 1 pt 4 ps 0.5
set style line 17 lc rgb '#000000' lw 1.3 dt (16,8) pt 4 ps 0.5
set style line 20 lc rgb '#e2e2e2' lw 0.7 dt 1
set style line 21 lc rgb '#606060' lw 0.8 dt 1
set border 3 ls 21
set grid ls 20
set tics nomirror out scale 0.5
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
unset key
set multiplot
set label 910 'The demo model on its own text' at screen 0.01875, screen 0.95185 left font 'sans-serif,17' tc rgb '#111111'
set label 912 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01875, screen 0.90741 left tc rgb '#606060'
set lmargin at screen 0.09896
set rmargin at screen 0.47396
set tmargin at screen 0.81481
set bmargin at screen 0.22222
set title 'time to the first token'
set xlabel 'requests a second'
set ylabel 'seconds'
unset logscale
set xrange [*:*]
set yrange [*:*]
set xtics auto
set ytics auto
set yrange [0:*]
set arrow 1 from screen 0.05729, screen 0.06481 to screen 0.08854, screen 0.06481 nohead ls 1
set label 1 'full, p50' at screen 0.09688, screen 0.06481 left
set arrow 2 from screen 0.26562, screen 0.06481 to screen 0.29688, screen 0.06481 nohead ls 11
set label 2 'full, p99' at screen 0.30521, screen 0.06481 left
plot $c0l0 using 1:2 with linespoints ls 1 pt 7 ps 0.5, \
    $c0l1 using 1:2 with linespoints ls 11 pt 6 ps 0.5
unset label
unset arrow
set lmargin at screen 0.59896
set rmargin at screen 0.97396
set tmargin at screen 0.81481
set bmargin at screen 0.22222
set title 'time to the first token'
set xlabel 'requests a second'
set ylabel 'seconds'
unset logscale
set xrange [*:*]
set yrange [*:*]
set xtics auto
set ytics auto
set logscale y 10
set yrange [0.0568182:2.75]
set ytics ('0.1' 0.1, '0.2' 0.2, '0.5' 0.5, '1' 1, '2' 2)
set arrow 1 from screen 0.55729, screen 0.06481 to screen 0.58854, screen 0.06481 nohead ls 1
set label 1 'full, p50' at screen 0.59687, screen 0.06481 left
set arrow 2 from screen 0.76562, screen 0.06481 to screen 0.79688, screen 0.06481 nohead ls 11
set label 2 'full, p99' at screen 0.80521, screen 0.06481 left
set label 900 'limit' at graph 0.01, first 1.5 left offset 0, 0.5 tc rgb '#404040'
plot $c1l0 using 1:2 with linespoints ls 1 pt 7 ps 0.5, \
    $c1l1 using 1:2 with linespoints ls 11 pt 6 ps 0.5, \
    1.5 with lines lc rgb '#404040' lw 1.2 dt '-'
unset label
unset arrow
unset multiplot
