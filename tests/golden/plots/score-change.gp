set encoding utf8
set terminal svg size 1119,888 font 'sans-serif,13' noenhanced background '#ffffff'
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
$p0l0 << EOD
# x y low high
1 2 NaN NaN
2 2.68359375 NaN NaN
3 3.3671875 NaN NaN
4 4.05078125 NaN NaN
5 4.734375 NaN NaN
EOD
$p0l1 << EOD
# x y low high
1 2 1.8046875 2.29296875
2 3.3671875 3.171875 3.66015625
3 4.734375 4.5390625 5.02734375
4 NaN 5.90625 6.39453125
5 7.46875 7.2734375 7.76171875
EOD
$p1l0 << EOD
# x y low high
1 2 NaN NaN
2 2.68359375 NaN NaN
3 3.3671875 NaN NaN
4 4.05078125 NaN NaN
5 4.734375 NaN NaN
EOD
$p1l1 << EOD
# x y low high
1 2 1.8046875 2.29296875
2 3.3671875 3.171875 3.66015625
3 4.734375 4.5390625 5.02734375
4 NaN 5.90625 6.39453125
5 7.46875 7.2734375 7.76171875
EOD
$p2l0 << EOD
# x y low high
1 2 NaN NaN
2 2.68359375 NaN NaN
3 3.3671875 NaN NaN
4 4.05078125 NaN NaN
5 4.734375 NaN NaN
EOD
set multiplot
set label 910 'The demo model on its own text' at screen 0.01609, screen 0.97072 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01609, screen 0.94369 left  tc rgb '#606060'
set arrow 201 from screen 0.01787, screen 0.02477 to screen 0.04468, screen 0.02477 nohead ls 1
set label 1 'window' at screen 0.05004, screen 0.02477 left
set arrow 202 from screen 0.12967, screen 0.02477 to screen 0.15648, screen 0.02477 nohead ls 2
set label 2 'h2o:recent=25' at screen 0.16184, screen 0.02477 left
set lmargin at screen 0.08937
set rmargin at screen 0.50045
set tmargin at screen 0.87725
set bmargin at screen 0.52815
set title 'demo model'
set xlabel ''
set ylabel 'perplexity'
unset logscale
set xrange [0:5.05]
set xtics 1
set yrange [0:8]
set ytics 2
set boxwidth 0.1 absolute
plot $p0l0 using 1:2 with boxes ls 1 fs solid 0.55 border, \
    $p0l1 using 1:2 with histeps ls 2 lw 1.6
unset label
unset arrow
unset object
set lmargin at screen 0.56032
set rmargin at screen 0.97140
set tmargin at screen 0.87725
set bmargin at screen 0.52815
set title 'demo model'
set xlabel 'times smaller'
set ylabel ''
unset logscale
set logscale x 10
set xrange [1:5]
set xtics ('1' 1, '2' 2, '3' 3, '4' 4, '5' 5)
set logscale y 10
set yrange [1.64062:8.53789]
set ytics ('2' 2, '3' 3, '4' 4, '5' 5, '7' 7)
set boxwidth 0.1 absolute
plot $p1l0 using 1:2 with boxes ls 1 fs solid 0.55 border, \
    $p1l1 using 1:2 with histeps ls 2 lw 1.6
unset label
unset arrow
unset object
set lmargin at screen 0.08937
set rmargin at screen 0.50045
set tmargin at screen 0.44820
set bmargin at screen 0.09910
set title 'demo model'
set xlabel 'times smaller'
set ylabel 'perplexity'
unset logscale
set logscale x 10
set xrange [1:5]
set xtics ('1' 1, '2' 2, '3' 3, '4' 4, '5' 5)
set logscale y 10
set yrange [1.81818:5.20781]
set ytics ('2' 2, '3' 3, '4' 4)
set boxwidth 0.1 absolute
plot $p2l0 using 1:2 with boxes ls 1 fs solid 0.55 border
unset label
unset arrow
unset object
unset multiplot
