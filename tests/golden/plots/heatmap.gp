set encoding utf8
set terminal svg size 1060,606 font 'sans-serif,13' noenhanced background '#ffffff'
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
$score0 << EOD
1.1884766 NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN
0.4375 0.6347656 NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN
0.14160156 0.3173828 0.24121094 NaN NaN NaN NaN NaN NaN NaN NaN NaN
0.23925781 0.43847656 0.2734375 0.30859375 NaN NaN NaN NaN NaN NaN NaN NaN
0.36621094 0.3935547 0.38964844 0.23242188 0.083984375 NaN NaN NaN NaN NaN NaN NaN
0.0546875 0.3173828 0.21875 0.095703125 0.17773438 0.31152344 NaN NaN NaN NaN NaN NaN
0.25097656 0.22949219 0.15820312 0.28027344 0.053710938 0.21289062 0.028320312 NaN NaN NaN NaN NaN
0.0087890625 0.17285156 0.125 0.107421875 0.08984375 0.0625 0.1640625 0.060546875 NaN NaN NaN NaN
0.17578125 0.07714844 0.12695312 0.022460938 0.09863281 0.0068359375 0.055664062 0.01171875 0.15722656 NaN NaN NaN
0.08203125 0.19433594 0.13085938 0.13085938 0.029296875 0.017578125 0.041992188 0.087890625 0.022460938 0.04296875 NaN NaN
0.17773438 0.14257812 0.10253906 0.17773438 0.072265625 0.028320312 0.10839844 0.16015625 0.10644531 0.04296875 0.036132812 NaN
0.080078125 0.12890625 0.12402344 0.06640625 0.08984375 0.14941406 0.13085938 0.0234375 0.15039062 0.0107421875 0.08496094 0.13378906
EOD
$significant0 << EOD
1 NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN
0 1 NaN NaN NaN NaN NaN NaN NaN NaN NaN NaN
0 0 0 NaN NaN NaN NaN NaN NaN NaN NaN NaN
0 1 1 1 NaN NaN NaN NaN NaN NaN NaN NaN
1 1 1 1 0 NaN NaN NaN NaN NaN NaN NaN
0 1 1 0 1 1 NaN NaN NaN NaN NaN NaN
1 1 1 1 0 1 0 NaN NaN NaN NaN NaN
0 1 0 0 0 0 1 0 NaN NaN NaN NaN
1 0 1 0 0 0 0 0 1 NaN NaN NaN
0 1 1 1 0 0 0 0 0 0 NaN NaN
1 1 1 1 0 0 1 1 1 0 0 NaN
0 1 1 0 1 1 1 0 1 0 1 1
EOD
$rows0 << EOD
0.0546875 0.3173828 0.21875 0.095703125 0.17773438 0.31152344 NaN NaN NaN NaN NaN NaN
0.17773438 0.14257812 0.10253906 0.17773438 0.072265625 0.028320312 0.10839844 0.16015625 0.10644531 0.04296875 0.036132812 NaN
EOD
at_least(v) = v == v ? (v < low ? low : v) : NaN
set border 15 ls 21
unset grid
set multiplot
set label 910 'The demo model on its own text' at screen 0.01698, screen 0.95710 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01698, screen 0.91749 left  tc rgb '#606060'
set xtics 2 norotate font ','
set ytics 2 font ','
set xtics ('<s>' 0, 'The' 1, ' quick' 2, ' brown' 3, ' fox' 4, ''."'".'s' 5, ' tail' 6, ' is' 7, ' 50' 8, '%%' 9, ' red' 10, '.' 11) font ',8' rotate by 90 right
set ytics ('<s>' 0, 'The' 1, ' quick' 2, ' brown' 3, ' fox' 4, ''."'".'s' 5, ' tail' 6, ' is' 7, ' 50' 8, '%%' 9, ' red' 10, '.' 11) font ',8'
set xlabel ''
set ylabel ''
set xrange [-0.5:12-0.5]
set yrange [12-0.5:-0.5]
low = 0.001
set palette defined (0 '#440154', 1 '#482878', 2 '#3e4a89', 3 '#31688e', 4 '#26828e', 5 '#1f9e89', 6 '#35b779', 7 '#6dcd59', 8 '#b4de2c', 9 '#fde725')
set logscale cb
set cbrange [low:1]
set cbtics auto
set colorbox
set title 'layer 1, head 2: score'
set arrow 1 from graph 0, first 5 to graph 1, first 5 nohead front ls 2 lw 0.8
set arrow 2 from graph 0, first 10 to graph 1, first 10 nohead front ls 2 lw 0.8
set lmargin at screen 0.09906
set rmargin at screen 0.41981
set tmargin at screen 0.83828
set bmargin at screen 0.27723
plot $score0 matrix using (1 * $1 + 0.0):(1 * $2 + 0.0):(at_least($3)) with image pixels
unset label
unset arrow
set lmargin at screen 0.09906
set rmargin at screen 0.90094
set tmargin at screen 0.17492
set bmargin at screen 0.10891
set title ''
set ytics ('5' 0, '10' 1) font ','
set xtics 1 norotate font ','
set xlabel 'key position'
set ylabel 'query'
set yrange [2-0.5:-0.5]
unset colorbox
plot $rows0 matrix using (1 * $1 + 0.0):2:(at_least($3)) with image pixels
set colorbox
set xtics 2 norotate font ','
set ytics 2 font ','
set xtics ('<s>' 0, 'The' 1, ' quick' 2, ' brown' 3, ' fox' 4, ''."'".'s' 5, ' tail' 6, ' is' 7, ' 50' 8, '%%' 9, ' red' 10, '.' 11) font ',8' rotate by 90 right
set ytics ('<s>' 0, 'The' 1, ' quick' 2, ' brown' 3, ' fox' 4, ''."'".'s' 5, ' tail' 6, ' is' 7, ' 50' 8, '%%' 9, ' red' 10, '.' 11) font ',8'
set xlabel ''
set ylabel ''
set xrange [-0.5:12-0.5]
set yrange [12-0.5:-0.5]
low = 0.001
unset logscale cb
set palette defined (0 '#e4e8ec', 1 '#0b3c6f')
set cbrange [0:1]
unset colorbox
set title 'layer 1, head 2: above row’s average'
set arrow 1 from graph 0, first 5 to graph 1, first 5 nohead front ls 2 lw 0.8
set label 1 '5' at graph 1.02, first 5 left front tc ls 2
set arrow 2 from graph 0, first 10 to graph 1, first 10 nohead front ls 2 lw 0.8
set label 2 '10' at graph 1.02, first 10 left front tc ls 2
set lmargin at screen 0.58019
set rmargin at screen 0.90094
set tmargin at screen 0.83828
set bmargin at screen 0.27723
plot $significant0 matrix using (1 * $1 + 0.0):(1 * $2 + 0.0):($3) with image pixels
unset label
unset arrow
unset multiplot
