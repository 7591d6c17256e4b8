/* SPDX-License-Identifier: Apache-2.0 */
/* The page's style, and the script that sorts its tables (by number if a column holds numbers, in either direction);
 * the page is complete without it. The greys of figures are those of sh_svg_inline, inverted on a dark screen; print is
 * always light. */
#ifndef SH_REPORT_STYLE_H
#define SH_REPORT_STYLE_H

static const char sh_report_style[] =
    ":root{color-scheme:light dark;--ink:#16191d;--paper:#fff;--soft:#5b6168;--line:#dcdfe3;--box:#f4f5f7;"
    "--link:#005a9c;--warn:#b45309}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e8ea;--paper:#14171a;--soft:#a3aab2;--line:#343a41;"
    "--box:#1d2126;--link:#7cc0f5;--warn:#f0a945;"
    "--g0:#f2f2f2;--g17:#eeeeee;--g64:#c8c8c8;--g96:#b4b4b4;--g128:#9a9a9a;--g160:#7c7c7c;--g200:#4a4f55;"
    "--g226:#30353b;--g255:#14171a;--c0072b2:#4aa8e8;--cd55e00:#f2813a;--c009e73:#2cc596;--ccc79a7:#e09ac6;"
    "--c0b3c6f:#7cc0f5}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1rem 1rem 4rem;max-width:84rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper);overflow-wrap:anywhere}\n"
    "h1{font-size:1.7rem;line-height:1.2;margin:1rem 0 .3rem}\n"
    "h2{font-size:1.25rem;margin:2.8rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}\n"
    "p,dl{max-width:66rem}a{color:var(--link)}\n"
    ".answer p{font-size:1.25rem;line-height:1.4;margin:.5rem 0}.answer a{font-size:.9rem;white-space:nowrap}\n"
    ".bars{width:100%;font-size:1rem}.bars td{white-space:normal}.bars .track{width:45%;padding-right:1rem}\n"
    ".bars .track div{position:relative;height:1.1rem;background:var(--box)}\n"
    ".bars i{position:absolute;top:0;bottom:0;left:0}.bars .seen{background:var(--link)}\n"
    ".bars .most{background:var(--link);opacity:.4}.bars .limit{border-left:2px solid var(--warn)}\n"
    ".bars .is th,.bars .is td{font-weight:700;background:var(--box)}.bars th{vertical-align:top}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:1rem 0;padding:0}\n"
    ".soft,.note,figcaption{color:var(--soft)}\n"
    ".missing{border-left:3px solid var(--warn);background:var(--box);padding:.1rem .9rem;margin:1rem 0}\n"
    "nav .lacks::after{content:' (incomplete)';color:var(--warn)}\n"
    "dl div{display:flex;gap:.6rem}dt{color:var(--soft);min-width:9rem}dd{margin:0}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;margin:.4rem 0 1rem}\n"
    ".caption{color:var(--soft);font-size:.86rem;margin:1rem 0 .2rem}\n"
    "th,td{padding:.22rem .7rem .22rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);"
    "overflow-wrap:normal}\n"
    "td{white-space:nowrap}td.long{white-space:normal;overflow-wrap:anywhere;min-width:16rem;max-width:44rem}\n"
    "th.n,td.n{text-align:right}th{font-weight:600;vertical-align:bottom;min-width:3.4rem}\n"
    "th.by{cursor:pointer}th.by:hover,th.by:focus-visible{color:var(--link)}\n"
    "details{margin:.6rem 0}summary{cursor:pointer}\n"
    "details .scroll{max-height:32rem;overflow-y:auto}\n"
    "figure{margin:1.4rem 0}\n"
    "figure svg{display:block;width:100%;max-width:calc(1.35*var(--w));height:auto;min-width:min(var(--w),34rem)}\n"
    "figure svg.narrow{display:none;min-width:0}\n"
    "@media screen and (max-width:640px){figure svg.wide{display:none}figure svg.narrow{display:block}"
    ".answer p{font-size:1.1rem}.bars .of{display:none}.bars{font-size:.86rem}"
    ".bars .track{width:32%;padding-right:.6rem}"
    "dl div{display:block}}\n"
    "pre{white-space:pre-wrap;background:var(--box);padding:.5rem .8rem;margin:.5rem 0;font-size:.84rem;"
    "overflow-wrap:anywhere}\n"
    "@media print{body{max-width:none;font-size:10pt;padding:0}.scroll,details .scroll{overflow:visible;"
    "max-height:none}table{font-size:7.5pt}td{white-space:normal}figure{break-inside:avoid}"
    "figure svg{min-width:0}pre{white-space:pre-wrap}tr{break-inside:avoid}h2{break-after:avoid}nav{display:none}}\n";

static const char sh_report_script[] =
    "document.querySelectorAll('thead th').forEach(function(th){\n"
    "  function sort(){\n"
    "    var c=th.cellIndex,body=th.closest('table').tBodies[0],up=th.getAttribute('aria-sort')!='ascending';\n"
    "    th.parentNode.querySelectorAll('th').forEach(function(o){o.removeAttribute('aria-sort')});\n"
    "    th.setAttribute('aria-sort',up?'ascending':'descending');\n"
    "    Array.from(body.rows).sort(function(a,b){\n"
    "      var x=a.cells[c].textContent,y=b.cells[c].textContent,n=parseFloat(x),m=parseFloat(y);\n"
    "      if(th.className.indexOf('n')<0)n=m=NaN;\n"
    "      if(th.className.indexOf('n')>=0&&isNaN(n)!=isNaN(m))return isNaN(n)?1:-1;\n"
    "      var way=isNaN(n)||isNaN(m)?x.localeCompare(y):n-m;\n"
    "      return up?way:-way;\n"
    "    }).forEach(function(row){body.appendChild(row)});\n"
    "  }\n"
    "  th.classList.add('by');th.tabIndex=0;th.onclick=sort;\n"
    "  th.onkeydown=function(k){if(k.key=='Enter'||k.key==' '){k.preventDefault();sort()}};\n"
    "});\n";

#endif
