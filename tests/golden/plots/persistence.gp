set encoding utf8
set terminal svg size 1019,456 font 'sans-serif,13' noenhanced background '#ffffff'
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
$p0s0 << EOD
# 'demo model'
# layer ratio density min_head max_head
0 0.9052734375 0.1845703125 0.8466796875 0.9248046875
1 0.9365234375 0.1337890625 0.8779296875 0.9560546875
2 0.955078125 0.1796875 0.896484375 0.974609375
3 0.89453125 0.11328125 0.8359375 0.9140625
4 0.9033203125 0.2685546875 0.8447265625 0.9228515625
5 0.94140625 0.23828125 0.8828125 0.9609375
EOD
$p0s1 << EOD
# 'random twin'
# layer ratio density min_head max_head
0 0.384765625 0.166015625 0.326171875 0.404296875
1 0.3525390625 0.2607421875 0.2939453125 0.3720703125
2 0.322265625 0.14453125 0.263671875 0.341796875
3 0.42578125 0.271484375 0.3671875 0.4453125
4 0.462890625 0.19921875 0.404296875 0.482421875
5 0.3251953125 0.1357421875 0.2666015625 0.3447265625
EOD
$p1s0 << EOD
# 'demo model'
# layer ratio density min_head max_head
0 0.9384765625 0.1669921875 0.8798828125 0.9580078125
1 0.9248046875 0.240234375 0.8662109375 0.9443359375
2 0.9638671875 0.291015625 0.9052734375 0.9833984375
3 0.9013671875 0.28515625 0.8427734375 0.9208984375
4 0.90625 0.1083984375 0.84765625 0.92578125
5 0.8984375 0.1669921875 0.83984375 0.91796875
EOD
$p1s1 << EOD
# 'random twin'
# layer ratio density min_head max_head
0 0.4345703125 0.236328125 0.3759765625 0.4541015625
1 0.4013671875 0.115234375 0.3427734375 0.4208984375
2 NaN 0.1376953125 NaN NaN
3 0.4052734375 0.1826171875 0.3466796875 0.4248046875
4 0.404296875 0.2353515625 0.345703125 0.423828125
5 0.3310546875 0.2314453125 0.2724609375 0.3505859375
EOD
$p1m1 << EOD
# layers without a ratio
2
EOD
set multiplot
set label 910 'The demo model on its own text' at screen 0.01766, screen 0.94298 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01766, screen 0.89035 left  tc rgb '#606060'
set arrow 201 from screen 0.01963, screen 0.04825 to screen 0.04907, screen 0.04825 nohead ls 1
set label 1 'demo model' at screen 0.05496, screen 0.04825 left
set arrow 202 from screen 0.17213, screen 0.04825 to screen 0.20157, screen 0.04825 nohead ls 2
set label 2 'random twin' at screen 0.20746, screen 0.04825 left
set arrow 203 from screen 0.32463, screen 0.04825 to screen 0.35407, screen 0.04825 nohead lc rgb '#606060' lw 1.5 dt (16,8)
set label 3 'chance level (density)' at screen 0.35995, screen 0.04825 left
set object 204 rectangle from screen 0.53812, screen 0.03509 to screen 0.56757, screen 0.06140 front fc rgb '#a0a0a0' fs solid 0.6 noborder
set label 4 'range of the heads' at screen 0.57345, screen 0.04825 left
set label 205 '' at screen 0.73584, screen 0.04825 point lc rgb '#606060' pt 2 ps 0.6
set label 5 'none: no pivotal token left' at screen 0.75645, screen 0.04825 left
set lmargin at screen 0.08832
set rmargin at screen 0.50049
set tmargin at screen 0.78509
set bmargin at screen 0.19298
set title 'all pivotal tokens (R = 0, K = 1)'
set xlabel 'layer'
set ylabel 'persistence ratio'
set xtics 0, 1
set xrange [-0.5:5.5]
set yrange [0.1:1.027]
set ytics 0.2
plot $p0s0 using 1:4:5 with filledcurves ls 1 fs transparent solid 0.3 noborder, \
    $p0s1 using 1:4:5 with filledcurves ls 2 fs transparent solid 0.3 noborder, \
    $p0s0 using 1:($2 == $2 ? $3 : NaN) with lines ls 11, \
    '' using 1:2 with linespoints ls 1, \
    $p0s1 using 1:($2 == $2 ? $3 : NaN) with lines ls 12, \
    '' using 1:2 with linespoints ls 2
unset label
unset arrow
unset object
set lmargin at screen 0.55643
set rmargin at screen 0.96860
set tmargin at screen 0.78509
set bmargin at screen 0.19298
set title 'beyond recency (R = 10, K = 5)'
set xlabel 'layer'
set ylabel ''
set xtics 0, 1
set xrange [-0.5:5.5]
set yrange [-0.006667:1.027]
set ytics 0.2
set ytics 0.1, 0.2, 1
set ytics add ('none' 0.03333)
set arrow from graph 0, first 0.1 to graph 1, first 0.1 nohead ls 21
plot $p1s0 using 1:4:5 with filledcurves ls 1 fs transparent solid 0.3 noborder, \
    $p1s1 using 1:4:5 with filledcurves ls 2 fs transparent solid 0.3 noborder, \
    $p1s0 using 1:($2 == $2 ? $3 : NaN) with lines ls 11, \
    '' using 1:2 with linespoints ls 1, \
    $p1s1 using 1:($2 == $2 ? $3 : NaN) with lines ls 12, \
    '' using 1:2 with linespoints ls 2, \
    $p1m1 using ($1 + 0.00):(0.03333) with points ls 2 pt 2 ps 0.6
unset label
unset arrow
unset object
unset multiplot
