set encoding utf8
set terminal svg size 1004,506 font 'sans-serif,13' noenhanced background '#ffffff'
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
set xrange [0:1]
set xtics 0, 0.2, 1
set logscale y 10
set yrange [9.09091e-07:2.97]
set ytics ('10⁻⁶' 1e-06, '10⁻⁵' 1e-05, '10⁻⁴' 0.0001, '10⁻³' 0.001, '10⁻²' 0.01, '10⁻¹' 0.1, '1' 1)
set multiplot
set label 910 'The demo model on its own text' at screen 0.01793, screen 0.94862 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01793, screen 0.90119 left  tc rgb '#606060'
set object 201 rectangle from screen 0.01992, screen 0.07115 to screen 0.04980, screen 0.09486 front fc ls 1 fs solid 0.3 noborder
set label 1 'range over the layers' at screen 0.05578, screen 0.08300 left
set arrow 202 from screen 0.23673, screen 0.08300 to screen 0.26661, screen 0.08300 nohead ls 1
set label 2 'dropped mass, measured' at screen 0.27259, screen 0.08300 left
set arrow 203 from screen 0.46903, screen 0.08300 to screen 0.49891, screen 0.08300 nohead ls 2
set label 3 'law D' at screen 0.50488, screen 0.08300 left
set arrow 204 from screen 0.57743, screen 0.08300 to screen 0.60731, screen 0.08300 nohead ls 12 lw 1.8
set label 4 'law D, scores ≤ 1' at screen 0.61329, screen 0.08300 left
set arrow 205 from screen 0.76327, screen 0.08300 to screen 0.79315, screen 0.08300 nohead ls 5
set label 5 '2 × measured (bound)' at screen 0.79913, screen 0.08300 left
set arrow 206 from screen 0.01992, screen 0.04348 to screen 0.04980, screen 0.04348 nohead ls 12 lw 1.8
set label 6 '2 D, scores ≤ 1' at screen 0.05578, screen 0.04348 left
set arrow 207 from screen 0.19027, screen 0.04348 to screen 0.22015, screen 0.04348 nohead ls 4
set label 7 'Theorem 4.1 as printed' at screen 0.22613, screen 0.04348 left
set arrow 208 from screen 0.40708, screen 0.04348 to screen 0.43696, screen 0.04348 nohead ls 3
set label 8 'measured error' at screen 0.44294, screen 0.04348 left
set lmargin at screen 0.06972
set rmargin at screen 0.48805
set tmargin at screen 0.80632
set bmargin at screen 0.21344
set title 'dropped mass'
set xlabel 'share of scores kept'
plot $d0 using 1:(floor_at($3)):(floor_at($4)) with filledcurves ls 1 fs transparent solid 0.3 noborder, \
    $d0 using 1:(over(1 * $2)) with linespoints ls 1, \
    $d0 using 1:(over(1 * $5)) with lines ls 2, \
    $d0 using 1:(over(1 * $6)) with lines ls 12 lw 1.8
unset label
unset arrow
unset object
set lmargin at screen 0.54980
set rmargin at screen 0.96813
set tmargin at screen 0.80632
set bmargin at screen 0.21344
set title 'output error / max |v|'
set xlabel 'share of scores kept'
plot $d0 using 1:(over(2 * $2)) with linespoints ls 5, \
    $d0 using 1:(over(2 * $6)) with lines ls 12 lw 1.8, \
    $d0 using 1:(over(1 * $7)) with linespoints ls 4, \
    $d0 using 1:(over(1 * $8)) with linespoints ls 3
unset label
unset arrow
unset object
unset multiplot
