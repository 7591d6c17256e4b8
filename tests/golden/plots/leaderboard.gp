set encoding utf8
set terminal svg size 920,441 font 'sans-serif,13' noenhanced background '#ffffff'
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
$board0 << EOD
# place from height colour mass at the shares
0 0.2 0.908203125 0x404040 0.87890625 0.8984375 0.95703125
1 0.2 0.830078125 0x56B4E9 0.80078125 0.8203125 0.87890625
2 0.2 0.751953125 0x56B4E9 0.72265625 0.7421875 0.80078125
3 0.2 NaN 0x56B4E9 NaN 0.6640625 0.72265625
4 0.2 0.595703125 0x56B4E9 0.56640625 0.5859375 0.64453125
5 0.2 0.517578125 0x56B4E9 0.48828125 0.5078125 0.56640625
6 0.2 0.439453125 0x56B4E9 0.41015625 0.4296875 0.48828125
7 0.2 0.361328125 0x56B4E9 0.33203125 0.3515625 0.41015625
8 0.2 0.283203125 0xc8c8c8 0.25390625 0.2734375 0.33203125
EOD
set xlabel 'kept attention mass'
set multiplot
set label 910 'The demo model on its own text' at screen 0.01957, screen 0.94104 left font 'sans-serif,17' tc rgb '#111111'
set label 912 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01957, screen 0.88662 left tc rgb '#606060'
set lmargin at screen 0.14761
set rmargin at screen 0.96739
set tmargin at screen 0.81859
set bmargin at screen 0.32880
set title ''
set xrange [0.2:1.0]
set xtics auto
set yrange [8.6:-0.6]
set ytics ('oracle' 0, 'tova' 1, 'roco' 2, 'h2o:recent=5' 3, 'snapkv' 4, 'window' 5, 'random' 6, 'knorm' 7, 'full' 8)
set key at graph 0, graph -0.3472 left top vertical maxrows 3 Left reverse samplen 1
set label 'too few of these budgets' at graph 0.01, first 3 left tc rgb '#909090'
plot $board0 using 2:1:2:3:($1-0.36):($1+0.36):4 with boxxyerror fs solid 0.75 noborder lc rgb variable notitle, \
    NaN with boxes fs solid 0.75 noborder lc rgb '#56B4E9' title 'mean height, budgets '.'0.1 to 0.5', \
    NaN with boxes fs solid 0.75 noborder lc rgb '#404040' title 'sees the future', \
    NaN with boxes fs solid 0.75 noborder lc rgb '#c8c8c8' title 'keeps more than its budget', \
    '' using 5:1 with points ls 2 pt 7 ps 0.8 title 'at 0.1', \
    '' using 6:1 with points ls 4 pt 5 ps 0.8 title 'at 0.2', \
    '' using 7:1 with points ls 3 pt 9 ps 0.8 title 'at 0.5'
unset label
unset multiplot
