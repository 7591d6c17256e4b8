set encoding utf8
set terminal svg size 1080,585 font 'sans-serif,13' noenhanced background '#ffffff'
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
$d0 << EOD
# share measured least most law law_cut printed error
0.1 0.390625 0.1953125 0.78125 0.29296875 0.3125 NaN 0.09375
0.2 0.1953125 0.09765625 0.390625 0.0732421875 0.078125 NaN 0.046875
0.30000000000000004 0.09765625 0.048828125 0.1953125 0.017578125 0.01953125 NaN 0.0234375
0.4 0.048828125 0.0244140625 0.09765625 0.00390625 0.0048828125 0.5859375 0.01171875
0.5 0.0244140625 0.01171875 0.048828125 0.0009765625 0.0009765625 0.48828125 0.005859375
EOD
floor_at(y) = y == y ? (y < 1e-06 ? 1e-06 : y) : NaN
over(y) = y >= 1e-06 ? y : NaN
set logscale y
set xrange [0:1]
set xtics 0, 0.2, 1
set ytics ('1' 1, '10⁻¹' 1e-1, '10⁻²' 1e-2, '10⁻³' 1e-3, '10⁻⁴' 1e-4, '10⁻⁵' 1e-5, '10⁻⁶' 1e-6)
set yrange [1e-06:3]
set xlabel 'share of the scores that is kept'
set key at graph 0, graph -0.27 left top vertical Left reverse samplen 2
set multiplot
set label 910 'The demo model on its own text' at screen 0.01667, screen 0.95556 left font 'sans-serif,17' tc rgb '#111111'
set label 912 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01667, screen 0.91453 left tc rgb '#606060'
set lmargin at screen 0.08796
set rmargin at screen 0.47685
set tmargin at screen 0.82051
set bmargin at screen 0.30769
set title 'demo model'.': dropped mass'
set ylabel 'share of the attention mass'
plot $d0 using 1:(floor_at($3)):(floor_at($4)) with filledcurves ls 1 fs transparent solid 0.2 noborder title 'range over the layers', \
    '' using 1:(over($2)) with linespoints ls 1 title 'measured', \
    '' using 1:(over($5)) with lines ls 2 title 'law D', \
    '' using 1:(over($6)) with lines ls 12 lw 1.8 title 'law D, scores at most 1'
unset label
set lmargin at screen 0.56944
set rmargin at screen 0.95833
set tmargin at screen 0.82051
set bmargin at screen 0.30769
set title 'error of the output'
set ylabel 'error in units of max |v|'
plot $d0 using 1:(over(2 * $2)) with linespoints ls 5 title '2 x measured (bound)', \
    '' using 1:(over(2 * $6)) with lines ls 12 lw 1.8 title '2 D, scores at most 1', \
    '' using 1:(over($7)) with linespoints ls 4 title 'Theorem 4.1 as printed, where defined', \
    '' using 1:(over($8)) with linespoints ls 3 title 'measured error'
unset multiplot
