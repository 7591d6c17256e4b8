set encoding utf8
set terminal svg size 1150,426 font 'sans-serif,13' noenhanced background '#ffffff'
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
$plan0 << EOD
20 23 26
27 30 33
34 37 40
41 44 47
48 51 54
55 58 NaN
EOD
$layers0 << EOD
# layer mean least most
0 23 20 26
1 30 27 33
2 37 34 40
3 44 41 47
4 51 48 54
5 56.5 55 58
EOD
set multiplot
set label 910 'The demo model on its own text' at screen 0.01565, screen 0.93897 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01565, screen 0.88263 left  tc rgb '#606060'
set lmargin at screen 0.07391
set rmargin at screen 0.43043
set tmargin at screen 0.76995
set bmargin at screen 0.13615
set title 'h2o, greedy: 37.5 of 256 tokens a head'
set xlabel 'layer'
set ylabel 'KV head'
set xrange [-0.5:5.5]
set xtics 0, 1
set ytics 0, 1
set yrange [-0.5:2.5]
set cbrange [0:58]
set border 15 ls 21
unset grid
plot $plan0 matrix using ($3 == $3 ? $2 : NaN):1:($2-0.5):($2+0.5):($1-0.5):($1+0.5):3 with boxxyerror fs solid noborder lc palette
unset label
set lmargin at screen 0.55652
set rmargin at screen 0.91304
set tmargin at screen 0.76995
set bmargin at screen 0.13615
set title 'by layer: mean, range of heads'
set xlabel 'layer'
set ylabel 'tokens per head'
set xrange [-0.5:5.5]
set xtics 0, 1
set ytics 0, 1
set ytics 10
set yrange [0:60.9]
set border 3 ls 21
set grid ls 20
plot $layers0 using 1:3:4 with filledcurves ls 1 fs transparent solid 0.3 noborder, \
    '' using 1:2 with linespoints ls 1
unset label
unset multiplot
