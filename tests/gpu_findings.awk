# SPDX-License-Identifier: Apache-2.0
# What compute-sanitizer found, and whose it is:
#
#   awk -f tests/gpu_findings.awk LOG
#
# A kernel is launched, and the runtime called, through the driver and the runtime, whoever does it. So the innermost
# frames of the host that lie in these are passed over, and the next one says whose the finding is: libcublas's, or
# ours. Of frames in the driver and the runtime alone it is the runtime's, and so is a call of the driver's interface
# (cu...), which we never make. Without frames the kernel's name decides, and ours is what nothing else claims. What
# cuBLAS reads out of bounds can come of its arguments: such a finding is listed like the others, to be looked at.
#
# Prints a line for each kind of finding, then "findings: N ours, N in cuBLAS, N in the runtime", or "refused: ..."
# where the tool does not work on this machine. Exit status: 0 nothing of ours, 1 some, 3 refused.

function module_of(line) {
    if (match(line, / in [^ ]*$/))
        return substr(line, RSTART + 4)
    return ""
}

function see_frame(name, module) {
    n_frame++
    if (owner != "" || module ~ /libcuda\.so|libcudart|libcudadebugger|libsanitizer/ ||
        name ~ /^(libcudart_static|__cudart|cudart::|cu[A-Z]|cuda[A-Z])/)
        return
    owner = module ~ /libcublas/ ? "cublas" : "ours"
}

# The frame whose module stands on the next line never came to it.
function end_frame() {
    if (pending)
        see_frame(pending_name, "")
    pending = 0
}

function end_finding(    key) {
    end_frame()
    if (title == "")
        return
    if (title ~ /on CUDA API call to cu[A-Z]/)
        owner = "runtime"
    else if (owner == "" && n_frame)
        owner = "runtime"
    else if (owner == "")
        owner = kernel ~ /cublas|cutlass|xmma|gemm|gemv|splitK/ ? "cublas" : "ours"
    count[owner]++
    key = (owner == "ours" ? "ours" : owner == "cublas" ? "in cuBLAS" : "in the runtime") ": " title
    if (kernel != "")
        key = key ", " kernel
    if (!(key in seen))
        order[++n_order] = key
    seen[key]++
    title = ""
}

function begin_finding(text) {
    end_finding()
    title = text
    sub(/ at .*\+0x[0-9a-f]+.*/, "", title)
    gsub(/0x[0-9a-f]+/, "0x...", title)
    kernel = owner = ""
    n_frame = 0
}

function see_kernel(text) {
    if (kernel != "")
        return
    if (match(text, /at 0x[0-9a-f]+ in /))
        text = substr(text, RSTART + RLENGTH)
    else
        sub(/^.* at |^at /, "", text)
    sub(/\+0x.*| in [^ ]*$/, "", text)
    kernel = substr(text, 1, 100)
}

!/^=========/ { next }

{ text = $0; sub(/^=========/, "", text) }

text ~ /[Dd]evice (is )?not supported|not supported on this|[Uu]nsupported (GPU|device)|Internal Sanitizer Error|No attachable process|[Uu]nable to (attach|initiali[sz]e)|[Ff]ailed to (initiali[sz]e|attach)/ {
    if (refusal == "")
        refusal = text
    end_finding()
    next
}

text ~ /^ ?COMPUTE-SANITIZER|SUMMARY|Target application returned|didn't terminate|^ *$/ { end_finding(); next }
text ~ /^ (Info|INFO)/ { end_finding(); next }

text ~ /^ [^ ]/ {
    begin_finding(substr(text, 2))
    if (text ~ / at .*\+0x/)
        see_kernel(text)
    next
}

text ~ /^ +at / || text ~ / access at .*\+0x/ {
    line = text
    sub(/^ +/, "", line)
    see_kernel(line)
    next
}

text ~ /Host Frame:/ {
    end_frame()
    name = text
    sub(/^.*Host Frame: */, "", name)
    if (name ~ /\] in [^ ]*$/)
        see_frame(name, module_of(name))
    else {
        pending = 1
        pending_name = name
    }
    next
}

pending && text ~ /^ +in / {
    see_frame(pending_name, module_of(text))
    pending = 0
}

END {
    end_finding()
    for (i = 1; i <= n_order; i++)
        printf "%s (%d)\n", order[i], seen[order[i]]
    if (refusal != "" && !count["ours"]) {
        sub(/^ +/, "", refusal)
        printf "refused: the tool does not work on this machine: %s\n", refusal
        exit 3
    }
    printf "findings: %d ours, %d in cuBLAS, %d in the runtime\n", count["ours"], count["cublas"], count["runtime"]
    exit count["ours"] > 0
}
