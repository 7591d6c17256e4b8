set encoding utf8
set terminal svg size 925,400 font 'sans-serif,13' noenhanced background '#ffffff'
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
$board0 << EOD
# place height colour mass at the shares
0 0.908203125 0x404040 0.87890625 0.8984375 0.95703125
1 0.830078125 0x56B4E9 0.80078125 0.8203125 0.87890625
2 0.751953125 0x56B4E9 0.72265625 0.7421875 0.80078125
3 NaN 0x56B4E9 NaN 0.6640625 0.72265625
4 0.595703125 0x56B4E9 0.56640625 0.5859375 0.64453125
5 0.517578125 0x56B4E9 0.48828125 0.5078125 0.56640625
6 0.439453125 0x56B4E9 0.41015625 0.4296875 0.48828125
7 0.361328125 0x56B4E9 0.33203125 0.3515625 0.41015625
8 0.283203125 0xc8c8c8 0.25390625 0.2734375 0.33203125
EOD
set multiplot
set label 910 'The demo model on its own text' at screen 0.01946, screen 0.93500 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01946, screen 0.87500 left  tc rgb '#606060'
set object 201 rectangle from screen 0.02162, screen 0.09000 to screen 0.05405, screen 0.12000 front fc rgb '#56B4E9' fs solid 0.75 noborder
set label 1 'mean height, budgets 0.1 to 0.5' at screen 0.06054, screen 0.10500 left
set object 202 rectangle from screen 0.32376, screen 0.09000 to screen 0.35619, screen 0.12000 front fc rgb '#404040' fs solid 0.75 noborder
set label 2 'sees the future' at screen 0.36267, screen 0.10500 left
set object 203 rectangle from screen 0.50839, screen 0.09000 to screen 0.54083, screen 0.12000 front fc rgb '#c8c8c8' fs solid 0.75 noborder
set label 3 'keeps more than its budget' at screen 0.54731, screen 0.10500 left
set label 204 '' at screen 0.79317, screen 0.10500 point ls 2 pt 7 ps 0.8
set label 4 'at 0.1' at screen 0.81587, screen 0.10500 left
set label 205 '' at screen 0.03784, screen 0.05500 point ls 4 pt 5 ps 0.8
set label 5 'at 0.2' at screen 0.06054, screen 0.05500 left
set label 206 '' at screen 0.15533, screen 0.05500 point ls 3 pt 9 ps 0.8
set label 6 'at 0.5' at screen 0.17804, screen 0.05500 left
set lmargin at screen 0.13751
set rmargin at screen 0.96216
set tmargin at screen 0.81000
set bmargin at screen 0.27000
set title ''
set xlabel 'kept attention mass'
set xrange [0:1]
set xtics 0, 0.1
set yrange [8.6:-0.6]
set ytics ('oracle' 0, 'tova' 1, 'roco' 2, 'h2o:recent=5' 3, 'snapkv' 4, 'window' 5, 'random' 6, 'knorm' 7, 'full' 8)
set label 'too few of these budgets' at graph 0.01, first 3 left tc rgb '#909090'
plot $board0 using 2:1:(0):2:($1-0.36):($1+0.36):3 with boxxyerror fs solid 0.75 noborder lc rgb variable, \
    '' using 4:1 with points ls 2 pt 7 ps 0.8, \
    '' using 5:1 with points ls 4 pt 5 ps 0.8, \
    '' using 6:1 with points ls 3 pt 9 ps 0.8
unset label
unset arrow
unset object
unset multiplot
