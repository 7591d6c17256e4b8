set encoding utf8
set terminal svg size 970,250 font 'sans-serif,13' noenhanced background '#ffffff'
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
unset key
set multiplot
set label 910 'The demo model on its own text' at screen 0.01856, screen 0.89600 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01856, screen 0.80000 left  tc rgb '#606060'
set object 201 rectangle from screen 0.02062, screen 0.06400 to screen 0.05155, screen 0.11200 front fc ls 1 fs solid noborder
set label 1 'weights' at screen 0.05773, screen 0.08800 left
set object 202 rectangle from screen 0.14845, screen 0.06400 to screen 0.17938, screen 0.11200 front fc ls 2 fs solid noborder
set label 2 'cache' at screen 0.18557, screen 0.08800 left
set object 203 rectangle from screen 0.26031, screen 0.06400 to screen 0.29124, screen 0.11200 front fc ls 3 fs solid noborder
set label 3 'left over' at screen 0.29742, screen 0.08800 left
set arrow 204 from screen 0.38814, screen 0.08800 to screen 0.41907, screen 0.08800 nohead lc rgb '#000000' lw 1.6
set label 4 'usable memory' at screen 0.42526, screen 0.08800 left
set lmargin at screen 0.13505
set rmargin at screen 0.85340
set tmargin at screen 0.69600
set bmargin at screen 0.36000
set xlabel 'GiB of one GPU'
set yrange [1.6:-0.6]
set xrange [0:81.6]
set ytics scale 0 ('full cache' 0, '0.2' 1)
set object 1 rectangle from first 0, -0.36 to 16, 0.36 front fc ls 1 fs solid noborder
set object 2 rectangle from first 16, -0.36 to 64, 0.36 front fc ls 2 fs solid noborder
set object 3 rectangle from first 64, -0.36 to 80, 0.36 front fc ls 3 fs solid noborder
set arrow from first 79.5, -0.42 to 79.5, 0.42 nohead front lc rgb '#000000' lw 1.6
set label '42 sequences' at graph 1.015, first 0 left
set object 4 rectangle from first 0, 0.64 to 16, 1.36 front fc ls 1 fs solid noborder
set object 5 rectangle from first 16, 0.64 to 72, 1.36 front fc ls 2 fs solid noborder
set object 6 rectangle from first 72, 0.64 to 80, 1.36 front fc ls 3 fs solid noborder
set label '42 sequences' at graph 1.015, first 1 left
plot NaN notitle
unset multiplot
