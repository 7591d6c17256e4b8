set encoding utf8
set terminal svg size 930,299 font 'sans-serif,13' noenhanced background '#ffffff'
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
unset key
set label 910 'The demo model on its own text' at screen 0.01935, screen 0.91304 left font 'sans-serif,17' tc rgb '#111111'
set label 912 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01935, screen 0.83278 left tc rgb '#606060'
set lmargin at screen 0.27957
set rmargin at screen 0.83871
set tmargin at screen 0.68227
set bmargin at screen 0.40134
set xlabel 'GiB of one GPU; the line is the usable memory'
set yrange [1.6:-0.6]
set xrange [0:81.6]
set ytics scale 0 ('whole cache' 0, '0.2' 1)
set object 1 rectangle from first 0, -0.36 to 16, 0.36 front fc ls 1 fs solid noborder
set object 2 rectangle from first 16, -0.36 to 64, 0.36 front fc ls 2 fs solid noborder
set object 3 rectangle from first 64, -0.36 to 80, 0.36 front fc ls 3 fs solid noborder
set arrow from first 79.5, -0.45 to 79.5, 0.45 nohead front lc rgb '#000000' lw 1.6
set label '42 sequences' at graph 1.015, first 0 left
set object 4 rectangle from first 0, 0.64 to 16, 1.36 front fc ls 1 fs solid noborder
set object 5 rectangle from first 16, 0.64 to 72, 1.36 front fc ls 2 fs solid noborder
set object 6 rectangle from first 72, 0.64 to 80, 1.36 front fc ls 3 fs solid noborder
set label '42 sequences' at graph 1.015, first 1 left
set object 7 rectangle from screen 0.27957, screen 0.17057 to screen 0.29677, screen 0.13043 front fc ls 1 fs solid noborder
set label 'weights' at screen 0.30538, screen 0.15050 left
set object 8 rectangle from screen 0.46774, screen 0.17057 to screen 0.48495, screen 0.13043 front fc ls 2 fs solid noborder
set label 'cache' at screen 0.49355, screen 0.15050 left
set object 9 rectangle from screen 0.65591, screen 0.17057 to screen 0.67312, screen 0.13043 front fc ls 3 fs solid noborder
set label 'left over' at screen 0.68172, screen 0.15050 left
plot NaN notitle
