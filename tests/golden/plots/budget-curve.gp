set encoding utf8
set terminal svg size 1000,868 font 'sans-serif,13' noenhanced background '#ffffff'
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
$s0c0 << EOD
# 'oracle'
# share mass low high no_sink pivotal error
0.1 0.87890625 0.86328125 0.90234375 0.48828125 0.2978515625 0.126953125
0.2 0.8984375 0.8828125 0.921875 0.3662109375 0.552734375 0.111328125
0.30000000000000004 0.91796875 0.90234375 0.94140625 0.73046875 0.880859375 0.1669921875
0.4 0.9375 0.921875 0.9609375 0.4833984375 0.6328125 0.259765625
0.5 0.95703125 0.94140625 0.98046875 0.689453125 0.3095703125 0.1533203125
EOD
$s0c1 << EOD
# 'tova'
# share mass low high no_sink pivotal error
0.1 0.80078125 0.78515625 0.82421875 0.7578125 0.9375 0.2373046875
0.2 0.8203125 0.8046875 0.84375 0.5986328125 0.517578125 0.2021484375
0.30000000000000004 0.83984375 0.82421875 0.86328125 0.3193359375 0.5107421875 0.0859375
0.4 0.859375 0.84375 0.8828125 0.5078125 0.3369140625 0.4658203125
0.5 0.87890625 0.86328125 0.90234375 0.345703125 0.8662109375 0.3671875
EOD
$s0c2 << EOD
# 'roco'
# share mass low high no_sink pivotal error
0.1 0.72265625 0.70703125 0.74609375 0.552734375 0.4208984375 0.1640625
0.2 0.7421875 0.7265625 0.765625 0.353515625 0.373046875 0.25390625
0.30000000000000004 0.76171875 0.74609375 0.78515625 0.2529296875 0.421875 0.2998046875
0.4 0.78125 0.765625 0.8046875 0.673828125 0.6123046875 0.3955078125
0.5 0.80078125 0.78515625 0.82421875 0.7626953125 0.8779296875 0.2197265625
EOD
$s0c3 << EOD
# 'h2o:recent=5'
# share mass low high no_sink pivotal error
0.1 NaN NaN NaN 0.55078125 0.3017578125 0.470703125
0.2 0.6640625 0.6484375 0.6875 0.7587890625 0.580078125 0.470703125
0.30000000000000004 0.68359375 0.66796875 0.70703125 0.544921875 0.783203125 0.0546875
0.4 0.703125 0.6875 0.7265625 0.404296875 0.6376953125 0.2392578125
0.5 0.72265625 0.70703125 0.74609375 0.4140625 0.6240234375 0.0478515625
EOD
$s0c4 << EOD
# 'snapkv'
# share mass low high no_sink pivotal error
0.1 0.56640625 0.55078125 0.58984375 0.36328125 0.380859375 0.3056640625
0.2 0.5859375 0.5703125 0.609375 0.6337890625 0.662109375 0.2724609375
0.30000000000000004 0.60546875 0.58984375 0.62890625 0.7177734375 0.36328125 0.1904296875
0.4 0.625 0.609375 0.6484375 0.3056640625 0.392578125 0.2431640625
0.5 0.64453125 0.62890625 0.66796875 0.42578125 0.56640625 0.2392578125
EOD
$s0c5 << EOD
# 'window'
# share mass low high no_sink pivotal error
0.1 0.48828125 0.47265625 0.51171875 0.505859375 0.3388671875 0.2255859375
0.2 0.5078125 0.4921875 0.53125 0.212890625 0.62890625 0.4326171875
0.30000000000000004 0.52734375 0.51171875 0.55078125 0.5244140625 0.5048828125 0.212890625
0.4 0.546875 0.53125 0.5703125 0.646484375 0.3427734375 0.154296875
0.5 0.56640625 0.55078125 0.58984375 0.6787109375 0.4833984375 0.0869140625
EOD
$s0c6 << EOD
# 'random'
# share mass low high no_sink pivotal error
0.1 0.41015625 0.39453125 0.43359375 0.7666015625 0.7216796875 0.0625
0.2 0.4296875 0.4140625 0.453125 0.5380859375 0.345703125 0.35546875
0.30000000000000004 0.44921875 0.43359375 0.47265625 0.5966796875 0.4833984375 0.1279296875
0.4 0.46875 0.453125 0.4921875 0.646484375 0.951171875 0.33203125
0.5 0.48828125 0.47265625 0.51171875 0.5439453125 0.380859375 0.1396484375
EOD
$s0c7 << EOD
# 'knorm'
# share mass low high no_sink pivotal error
0.1 0.33203125 0.31640625 0.35546875 0.345703125 0.3203125 0.26953125
0.2 0.3515625 0.3359375 0.375 0.7177734375 0.3173828125 0.3505859375
0.30000000000000004 0.37109375 0.35546875 0.39453125 0.451171875 0.5234375 0.041015625
0.4 0.390625 0.375 0.4140625 0.6357421875 0.900390625 0.2802734375
0.5 0.41015625 0.39453125 0.43359375 0.6806640625 0.6630859375 0.3984375
EOD
$s0c8 << EOD
# 'full'
# share mass low high no_sink pivotal error
0.1 0.25390625 0.23828125 0.27734375 0.595703125 0.7509765625 0.1904296875
0.2 0.2734375 0.2578125 0.296875 0.279296875 0.7158203125 0.310546875
0.30000000000000004 0.29296875 0.27734375 0.31640625 0.626953125 0.9296875 0.3408203125
0.4 0.3125 0.296875 0.3359375 0.205078125 0.4873046875 0.484375
0.5 0.33203125 0.31640625 0.35546875 0.71484375 0.4365234375 0.208984375
EOD
lost(v) = v <= 0.9999 ? 1 - v : NaN
seen(v) = v >= 0.0001 ? v : NaN
set xrange [0:1]
set xtics 0, 0.25, 1
set multiplot
set label 910 'The demo model on its own text' at screen 0.01800, screen 0.97005 left font 'sans-serif,17.03' tc rgb '#111111'
set label 913 'alpha 1/n, split 0.5, 12 tokens' at screen 0.01800, screen 0.94240 left  tc rgb '#606060'
set arrow 201 from screen 0.02000, screen 0.02535 to screen 0.05000, screen 0.02535 nohead lc rgb '#c8c8c8' lw 0.8 dt 1
set label 1 'others, or more than the budget' at screen 0.05600, screen 0.02535 left
set object 202 rectangle from screen 0.30328, screen 0.01843 to screen 0.33328, screen 0.03226 front fc rgb '#a0a0a0' fs solid 0.6 noborder
set label 2 '95 % interval' at screen 0.33928, screen 0.02535 left
set lmargin at screen 0.07000
set rmargin at screen 0.37000
set tmargin at screen 0.87442
set bmargin at screen 0.52880
set title 'mass lost (1 − kept)'
set xlabel ''
set logscale y 10
set yrange [0.0390625:0.820703]
set ytics ('0.05' 0.05, '0.1' 0.1, '0.2' 0.2, '0.5' 0.5)
set label 300 'oracle' at graph 1.02, graph 0.0313 left tc rgb '#000000'
set label 301 'tova' at graph 1.02, graph 0.3716 left tc rgb '#005F96'
set label 302 'roco' at graph 1.02, graph 0.5351 left tc rgb '#A84A00'
set label 303 'h2o:recent=5' at graph 1.02, graph 0.6437 left tc rgb '#006B4E'
set label 304 'snapkv' at graph 1.02, graph 0.7252 left tc rgb '#9A3F73'
set label 305 'window' at graph 1.02, graph 0.7905 left tc rgb '#8A5A00'
set label 306 'random' at graph 1.02, graph 0.8455 left tc rgb '#1E6E9E'
plot $s0c1 using 1:(lost($3)):(lost($4)) with filledcurves ls 1 fs transparent solid 0.3 noborder, \
    $s0c2 using 1:(lost($3)):(lost($4)) with filledcurves ls 2 fs transparent solid 0.3 noborder, \
    $s0c3 using 1:(lost($3)):(lost($4)) with filledcurves ls 3 fs transparent solid 0.3 noborder, \
    $s0c4 using 1:(lost($3)):(lost($4)) with filledcurves ls 4 fs transparent solid 0.3 noborder, \
    $s0c5 using 1:(lost($3)):(lost($4)) with filledcurves ls 5 fs transparent solid 0.3 noborder, \
    $s0c6 using 1:(lost($3)):(lost($4)) with filledcurves ls 6 fs transparent solid 0.3 noborder, \
    $s0c7 using 1:(lost($2)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c8 using 1:(lost($2)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c0 using 1:(lost($2)) with lines lc rgb '#000000' lw 2.2 dt 1, \
    $s0c1 using 1:(lost($2)) with linespoints ls 1 dt 1 pt 7 ps 0.4, \
    $s0c2 using 1:(lost($2)) with linespoints ls 2 dt 1 pt 7 ps 0.4, \
    $s0c3 using 1:(lost($2)) with linespoints ls 3 dt 1 pt 7 ps 0.4, \
    $s0c4 using 1:(lost($2)) with linespoints ls 4 dt 1 pt 7 ps 0.4, \
    $s0c5 using 1:(lost($2)) with linespoints ls 5 dt 1 pt 7 ps 0.4, \
    $s0c6 using 1:(lost($2)) with linespoints ls 6 dt 1 pt 7 ps 0.4
unset label
unset arrow
unset object
set lmargin at screen 0.55000
set rmargin at screen 0.85000
set tmargin at screen 0.87442
set bmargin at screen 0.52880
set title 'without sinks, newest'
set xlabel ''
set logscale y 10
set yrange [0.21218:0.874414]
set ytics ('0.3' 0.3, '0.4' 0.4, '0.6' 0.6, '0.8' 0.8)
set label 300 'random' at graph 1.02, graph 0.5403 left tc rgb '#1E6E9E'
set label 301 'oracle' at graph 1.02, graph 0.5953 left tc rgb '#000000'
set label 302 'roco' at graph 1.02, graph 0.6503 left tc rgb '#A84A00'
set label 303 'h2o:recent=5' at graph 1.02, graph 0.7173 left tc rgb '#006B4E'
set label 304 'window' at graph 1.02, graph 0.7723 left tc rgb '#8A5A00'
set label 305 'tova' at graph 1.02, graph 0.8273 left tc rgb '#005F96'
set label 306 'snapkv' at graph 1.02, graph 0.8823 left tc rgb '#9A3F73'
plot $s0c7 using 1:(lost($5)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c8 using 1:(lost($5)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c0 using 1:(lost($5)) with lines lc rgb '#000000' lw 2.2 dt 1, \
    $s0c1 using 1:(lost($5)) with linespoints ls 1 dt 1 pt 7 ps 0.4, \
    $s0c2 using 1:(lost($5)) with linespoints ls 2 dt 1 pt 7 ps 0.4, \
    $s0c3 using 1:(lost($5)) with linespoints ls 3 dt 1 pt 7 ps 0.4, \
    $s0c4 using 1:(lost($5)) with linespoints ls 4 dt 1 pt 7 ps 0.4, \
    $s0c5 using 1:(lost($5)) with linespoints ls 5 dt 1 pt 7 ps 0.4, \
    $s0c6 using 1:(lost($5)) with linespoints ls 6 dt 1 pt 7 ps 0.4
unset label
unset arrow
unset object
set lmargin at screen 0.07000
set rmargin at screen 0.37000
set tmargin at screen 0.44700
set bmargin at screen 0.10138
set title 'pivotal tokens lost'
set xlabel 'budget as a share of the length'
set logscale y 10
set yrange [0.0443892:0.772363]
set ytics ('0.05' 0.05, '0.1' 0.1, '0.2' 0.2, '0.5' 0.5)
set label 300 'tova' at graph 1.02, graph 0.3862 left tc rgb '#005F96'
set label 301 'random' at graph 1.02, graph 0.7450 left tc rgb '#1E6E9E'
set label 302 'h2o:recent=5' at graph 1.02, graph 0.8000 left tc rgb '#006B4E'
set label 303 'oracle' at graph 1.02, graph 0.8550 left tc rgb '#000000'
set label 304 'roco' at graph 1.02, graph 0.9100 left tc rgb '#A84A00'
set label 305 'snapkv' at graph 1.02, graph 0.9650 left tc rgb '#9A3F73'
set label 306 'window' at graph 1.02, graph 1.0200 left tc rgb '#8A5A00'
plot $s0c7 using 1:(lost($6)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c8 using 1:(lost($6)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c0 using 1:(lost($6)) with lines lc rgb '#000000' lw 2.2 dt 1, \
    $s0c1 using 1:(lost($6)) with linespoints ls 1 dt 1 pt 7 ps 0.4, \
    $s0c2 using 1:(lost($6)) with linespoints ls 2 dt 1 pt 7 ps 0.4, \
    $s0c3 using 1:(lost($6)) with linespoints ls 3 dt 1 pt 7 ps 0.4, \
    $s0c4 using 1:(lost($6)) with linespoints ls 4 dt 1 pt 7 ps 0.4, \
    $s0c5 using 1:(lost($6)) with linespoints ls 5 dt 1 pt 7 ps 0.4, \
    $s0c6 using 1:(lost($6)) with linespoints ls 6 dt 1 pt 7 ps 0.4
unset label
unset arrow
unset object
set lmargin at screen 0.55000
set rmargin at screen 0.85000
set tmargin at screen 0.44700
set bmargin at screen 0.10138
set title 'output error'
set xlabel 'budget as a share of the length'
set logscale y 10
set yrange [0.0372869:0.532813]
set ytics ('0.04' 0.04, '0.05' 0.05, '0.07' 0.07, '0.1' 0.1, '0.15' 0.15, '0.2' 0.2, '0.3' 0.3, '0.4' 0.4, '0.5' 0.5)
set label 300 'oracle' at graph 1.02, graph 0.5316 left tc rgb '#000000'
set label 301 'random' at graph 1.02, graph 0.5866 left tc rgb '#1E6E9E'
set label 302 'h2o:recent=5' at graph 1.02, graph 0.6416 left tc rgb '#006B4E'
set label 303 'window' at graph 1.02, graph 0.6966 left tc rgb '#8A5A00'
set label 304 'tova' at graph 1.02, graph 0.8600 left tc rgb '#005F96'
set label 305 'snapkv' at graph 1.02, graph 0.9150 left tc rgb '#9A3F73'
set label 306 'roco' at graph 1.02, graph 0.9700 left tc rgb '#A84A00'
plot $s0c7 using 1:(seen($7)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c8 using 1:(seen($7)) with lines lc rgb '#c8c8c8' lw 0.8 dt 1, \
    $s0c0 using 1:(seen($7)) with lines lc rgb '#000000' lw 2.2 dt 1, \
    $s0c1 using 1:(seen($7)) with linespoints ls 1 dt 1 pt 7 ps 0.4, \
    $s0c2 using 1:(seen($7)) with linespoints ls 2 dt 1 pt 7 ps 0.4, \
    $s0c3 using 1:(seen($7)) with linespoints ls 3 dt 1 pt 7 ps 0.4, \
    $s0c4 using 1:(seen($7)) with linespoints ls 4 dt 1 pt 7 ps 0.4, \
    $s0c5 using 1:(seen($7)) with linespoints ls 5 dt 1 pt 7 ps 0.4, \
    $s0c6 using 1:(seen($7)) with linespoints ls 6 dt 1 pt 7 ps 0.4
unset label
unset arrow
unset object
unset multiplot
