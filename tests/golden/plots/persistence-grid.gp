set encoding utf8
set terminal svg size 605,322 font 'sans-serif,13' noenhanced background '#ffffff'
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
$lift0 << EOD
1.9521484375 10.0771484375 4.248046875 17.6904296875
12.119140625 4.2236328125 2.5185546875 6.0244140625
18.873046875 14.3701171875 14.2490234375 NaN
EOD
low = 1
high = 18.87304688
at_least(v) = v == v ? (v < low ? low : v) : NaN
is_dark(v) = v == v ? log(at_least(v) / low) < 0.62 * log(high / low) : 0
said(v) = v == v ? sprintf(v < 9.95 ? '%.2f' : v < 99.5 ? '%.1f' : '%.0f', v) : ''
set cbrange [low:high]
set cblabel 'lift = ratio / chance' offset 0.8, 0
set border 15 ls 21
unset grid
set tics scale 0
set logscale cb
set cbtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
set multiplot
set label 910 'The demo model on its own text' at screen 0.02975, screen 0.91925 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.02975, screen 0.84472 left  tc rgb '#606060'
set lmargin at screen 0.14876
set rmargin at screen 0.84298
set tmargin at screen 0.69565
set bmargin at screen 0.18012
set title 'demo model'
set xlabel 'R: recent tokens left out'
set ylabel 'pivotal above'
set xtics ('0' 0, '1' 1, '10' 2, '50' 3)
set ytics ('1/n' 0, '5/n' 1, '0.05' 2)
set xrange [-0.5:3.5]
set yrange [-0.5:2.5]
set object 1 rectangle from 2.5, 1.5 to 3.5, 2.5 behind fc rgb '#dcdcdc' fs solid noborder
set object 2 rectangle from 2.5, 1.5 to 3.5, 2.5 front fc rgb '#b4b4b4' fs transparent pattern 4 noborder
set label 1 'none' at 3, 2 center front tc rgb '#404040'
set colorbox
plot $lift0 matrix using ($3 == $3 ? $1 : NaN):2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):(at_least($3)) with boxxyerror fs solid noborder lc palette, \
    '' matrix using 1:2:(is_dark($3) ? said($3) : '') with labels tc rgb '#fffff0', \
    '' matrix using 1:2:(is_dark($3) ? '' : said($3)) with labels tc rgb '#0b0b17'
unset label
unset object
unset multiplot
