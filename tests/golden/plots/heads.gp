set encoding utf8
set terminal svg size 960,426 font 'sans-serif,13' noenhanced background '#ffffff'
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
$ratio0 << EOD
0.669921875 0.8134765625 0.9384765625
0.7021484375 0.818359375 0.861328125
0.6142578125 0.828125 0.669921875
0.8603515625 0.6103515625 0.6796875
0.9921875 NaN 0.9287109375
0.9228515625 0.9033203125 0.6552734375
EOD
$lift0 << EOD
3.0888671875 1.8759765625 3.5859375
7.6982421875 1.3427734375 4.001953125
6.775390625 8.42578125 2.279296875
8.3759765625 5.8486328125 1.2216796875
1.048828125 3.630859375 7.1240234375
6.7958984375 7.7158203125 4.142578125
EOD
at_least(v, low) = v == v ? (v < low ? low : v) : NaN
set border 15 ls 21
unset grid
set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 behind fc rgb '#c8c8c8' fs solid noborder
set multiplot
set label 910 'The demo model on its own text' at screen 0.01875, screen 0.93897 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01875, screen 0.88263 left  tc rgb '#606060'
set object 201 rectangle from screen 0.02083, screen 0.03756 to screen 0.05208, screen 0.06573 front fc rgb '#c8c8c8' fs solid noborder
set label 1 'no pivotal token was left' at screen 0.05833, screen 0.05164 left
set lmargin at screen 0.07812
set rmargin at screen 0.41146
set tmargin at screen 0.76995
set bmargin at screen 0.20657
set title 'ratio, R = 0, K = 1'
set xlabel 'layer'
set ylabel 'head'
unset logscale cb
set cbtics auto
set cblabel 'persistence ratio' offset 0.8, 0
set xtics 0, 1
set ytics 0, 1
set xrange [-0.5:5.5]
set yrange [-0.5:2.5]
low = 0.5
set cbrange [low:1]
plot $ratio0 matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):($1+0.5):(at_least($3, low)) with boxxyerror fs solid noborder lc palette
unset label
unset arrow
set lmargin at screen 0.54688
set rmargin at screen 0.88021
set tmargin at screen 0.76995
set bmargin at screen 0.20657
set title 'lift, R = 10, K = 5'
set xlabel 'layer'
set ylabel ''
set logscale cb
set cbtics (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 7, 10)
set cblabel 'lift = ratio / chance' offset 0.8, 0
set xtics 0, 1
set ytics 0, 1
set xrange [-0.5:5.5]
set yrange [-0.5:2.5]
low = 1
set cbrange [low:8.42578125]
plot $lift0 matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):($1+0.5):(at_least($3, low)) with boxxyerror fs solid noborder lc palette
unset label
unset arrow
unset multiplot
