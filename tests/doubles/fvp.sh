#!/bin/sh
# Stands for an Arm FVP under its name: takes an FVP's arguments, refuses what it does not know,
# and ends in the way that the file "ending" beside it says. No simulation takes place.
here=${0%/*}
ending=$(cat "$here/ending")
if [ "$1" = --version ]; then
  echo "Fast Models [11.27.42 (Dec  9 2024)]"
  exit 0
fi

if [ "$1" = --list-params ]; then
  sed 's/.*/&=0  # (int, init-time) default = 0/' "$here/parameters"
  exit 0
fi

elf= cwd=. line=
while [ $# -gt 0 ]; do
  case $1 in
    -C)
      name=${2%%=*}
      if ! grep -qxF "$name" "$here/parameters"; then
        echo "Error: ${0##*/}: unknown parameter '$name'" >&2
        exit 1
      fi
      case $name in
        *.semihosting-cwd) cwd=${2#*=} ;;
        *.semihosting-cmd_line) line=${2#*=} ;;
      esac
      shift 2 ;;
    -a) elf=$2; shift 2 ;;
    --timelimit | --simlimit | --cyclelimit | --cpulimit) shift 2 ;;
    *) echo "Error: ${0##*/}: unknown option '$1'" >&2; exit 1 ;;
  esac
done
[ -f "$elf" ] && [ ${#line} -le 256 ] && cd "$cwd" || exit 1

say() { printf 'I [executorch:arm_executor_runner.cpp:%s main()] %s\n' "$1" "$2"; }
bad() { printf '%s [executorch:%s] %s\n' "$1" "$2" "$3"; }
banner() {
  printf 'telnetterminal0: Listening for serial connection on port 5000\n\n'
  printf '    Ethos-U rev 136b7d75 --- Apr 12 2023 13:44:01\n    ALL RIGHTS RESERVED\n\n'
}
stopped() { printf '\nInfo: /OSCI/SystemC: Simulation stopped by user.\n'; }
start() {
  banner
  say 100 "build id $(cat "$here/build_id")"
  say 120 'Model buffer loaded, has 1 methods'
}
loaded() { start; say 467 'Method loaded.'; say 480 'Starting the model execution...'; }
outputs() { cp "$here"/answers/*.bin .; }
complete() { say 900 'Program complete, exiting.'; printf '\004'; stopped; }
pass() { loaded; outputs; say 600 'TEST: BundleIO index[0] Test_result: PASS'; complete; }
fault() {
  printf 'Hard fault. irq=-13, pc=0x00000000, lr=0x10000101, xpsr=0x61000003, sp=0x30007f00\n'
  printf '            cfsr=0x00020000 bfar=0x00000000 mmfar=0x00000000\n'
}
thrown() {
  printf "terminate called after throwing an instance of 'sc_core::sc_report'\n"
  printf '  what():  Error: simulation aborted\n'
}
limit() { printf '\nInfo: Simulation is stopping. Reason: CPU time has been exceeded.\n'; }
exit_code() { printf 'Application exit code: %s.\n\004\nEXITTHESIM\n' "$1"; }
dump() {
  printf 'E: r0/a1:  0x00000000  r1/a2:  0x00000001  r2/a3:  0x00000002\n'
  printf 'E: Faulting instruction address (r15/pc): 0x1000123c\n'
  printf 'E: >>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0\nE: Halting system\n'
}
ignored() {
  bad E method.cpp:939 'Overriding output data pointer allocated by memory plan is not allowed.'
  bad I qnn_executor_runner.cpp:263 'ignoring error from set_output_data_ptr(): 0x2'
}
not_loaded() {
  printf 'Warning: Failed to write bytes at address range [0x00080000..0x000B2B07] when loading image "a".\n'
}
E549='Error: (E549) uncaught exception:'

case $ending in
  passes) pass ;;
  undeclared_output) loaded; outputs; cp "$here"/answers/s0-0.bin s0-1.bin; complete ;;
  rewrites_input) loaded; outputs; cp "$here"/wrong/s0-0.bin s0i0.bin; complete ;;
  removes_program) loaded; outputs; rm program.pte; complete ;;
  passes_slowly) loaded; sleep 0.3; outputs; complete ;;
  passes_then_limit)
    loaded; outputs; say 900 'Program complete, exiting.'
    printf '\nInfo: Simulation is stopping. Reason: CPU time has been exceeded.\n' ;;
  limit_before_end)
    loaded; outputs; printf '\nInfo: Simulation is stopping. Reason: Simulated time has been exceeded.\n' ;;
  cycle_limit)
    loaded; printf '\nInfo: Simulation is stopping. Reason: Cycle limit has been exceeded.\n' ;;
  fails_exit_0) loaded; outputs; bad E m.cpp:1 'TEST: BundleIO index[0] Test_result: FAIL'; complete ;;
  abort_after_pass)
    loaded; outputs; say 600 'TEST: BundleIO index[0] Test_result: PASS'
    bad F arm_executor_runner.cpp:700 'Problem running model'; stopped; exit 1 ;;
  wrong_by_one) loaded; cp "$here"/wrong/*.bin .; complete ;;
  no_output) loaded; complete ;;
  short_output) loaded; outputs; printf x >s0-0.bin; complete ;;
  output_not_written)
    loaded; bad E 'runner.cpp:1 main()' 'Could not open output file s0-0.bin (errno: 13)'; complete ;;
  wrong_firmware) banner; say 100 'build id ffffffffffffffff'; outputs; complete ;;
  exits_1) loaded; exit 1 ;;
  exits_127) exit 127 ;;
  sigkill) loaded; kill -KILL $$ ;;
  sigsegv) loaded; kill -SEGV $$ ;;
  no_licence) echo "Error: failed to check out a license for feature 'FM_Simulator'."; exit 1 ;;
  missing_library)
    echo "$0: error while loading shared libraries: libpython3.9.so.1.0: cannot open shared object file: No such file or directory" >&2
    exit 127 ;;
  execstack)
    echo "$E549 /fvp/libarmctmodel.so: cannot enable executable stack as shared object requires: Invalid argument"
    exit 1 ;;
  host_limits) echo "$E549 Resource temporarily unavailable"; exit 1 ;;
  eula) echo 'You must accept the End User License Agreement (EULA) first.'; exit 1 ;;
  model_error)
    printf 'Error: FVP_MPS3: mps3_board.uart0: cannot open out_file\nIn process: main @ 0 ns\n'; exit 1 ;;
  hard_fault) loaded; fault; exit 1 ;;
  hard_fault_then_runs_on) loaded; fault; sleep 600 ;;
  operator_missing)
    start
    bad E 'operator_registry.cpp:1 get_op()' "kernel 'aten::exp.out' not found."
    bad I method.cpp 'dtype: 6 | dim order: [0, 1]'
    bad E 'method.cpp:2 resolve()' 'Missing operator: [0] aten::exp.out'
    bad I arm_executor_runner.cpp:400 'Loading of method forward failed with status 0x14'
    say 467 'Method loaded.'
    bad F arm_executor_runner.cpp:500 'In function main(), assert failed (method.ok())'
    sleep 600 ;;
  allocator_too_small)
    start
    bad E 'memory_allocator.h:105 allocate()' 'Memory allocation failed: 6144000B requested (adjusted for alignment), 2000B available'
    bad F 'arm_executor_runner.cpp:287 main()' 'assert failed (buffer != nullptr): Could not allocate memory for memory planned buffer size 6144000'
    exit 1 ;;
  backend_missing)
    start; bad E 'method.cpp:1 Init()' 'Backend EthosUBackend is not registered.'
    bad I arm_executor_runner.cpp:400 'Loading of method forward failed with status 0x20'; sleep 600 ;;
  npu_error)
    loaded; echo 'E: NPU config mismatch. npu.product=1, npu.macs_per_cc=8, optimizer.macs_per_cc=6 (ethosu_driver.c:411)'
    bad E 'EthosUBackend.cpp:297 execute()' 'Ethos-U invocation failed error (-1)'; exit 1 ;;
  floods) loaded; yes 'I [executorch:x.cpp:1 f()] and again and again and again and again' | head -c 3000000; outputs; complete ;;
  floods_for_ever)  # 0.4 MB a second, so that it is the deadline that ends it everywhere
    loaded
    while :; do yes 'and again and again and again and again' | head -c 20000; sleep 0.05; done ;;
  trickles) loaded; for _ in 1 2 3 4 5; do printf '.'; sleep 0.1; done; echo; outputs; complete ;;
  stops_mid_line) loaded; printf 'I [executorch:arm_exec' ;;
  garbage) loaded; printf '\000\000\377\376 caf\303\n\200\201\n'; outputs; complete ;;
  ignores_sigterm) trap '' TERM INT HUP; loaded; while :; do sleep 600; done ;;
  keeps_pipe_open)  # by somebody who has left our process group before we end
    (setsid sh -c ': > up; exec sleep 600' &)
    while [ ! -e up ]; do sleep 0.02; done
    rm up; pass ;;
  stalls) loaded; exec sleep 600 ;;
  never_prints) exec sleep 600 ;;
  spins) loaded; while :; do :; done ;;
  looks_outside)
    cat /etc/passwd ../../secret "$here/../../secret"; loaded; outputs; complete ;;
  exit_code_then_limit)
    loaded; outputs; say 900 'Program complete, exiting.'; exit_code 0; limit ;;
  exit_code_alone) loaded; outputs; exit_code 0; limit ;;
  exit_code_1) loaded; outputs; say 900 'Program complete, exiting.'; exit_code 1; stopped ;;
  exits_the_sim_alone) loaded; outputs; echo EXITTHESIM; stopped ;;
  stack_overflow) loaded; echo 'E: ***** USAGE FAULT *****'; dump; exit 1 ;;
  registers_first) loaded; dump; exit 1 ;;
  bus_fault)
    loaded; printf 'E: ***** HARD FAULT *****\nE:   Fault escalation (see below)\n'
    printf 'E: ***** BUS FAULT *****\nE:   BFAR Address: 0x24060000\n'; exit 1 ;;
  npu_stops_early)
    loaded; outputs; echo 'W: Failure: IRQ received but qread (128) not at end of stream (512).'; complete ;;
  error_ignored) start; ignored; loaded; outputs; complete ;;
  error_ignored_no_end) start; ignored; sleep 0.1; stopped ;;
  image_not_loaded) banner; not_loaded ;;
  image_alias) not_loaded; pass ;;
  unity_fails) loaded; outputs; printf '3 Tests 1 Failures 0 Ignored \nFAIL\n'; complete ;;
  terminal_escapes)
    loaded; printf '\033]52;c;aGk=\007\033P1$r\033\\\010\010\r::error::x\n##[group]y\n'; outputs; complete ;;
  # It fails before the guest's first line, in words that are known or not.
  parameter_absent) echo "ERROR: parameter 'mps3_board.uart9.out_file' does not exist" >&2; exit 1 ;;
  parameter_of_instance) echo "In instance FVP_MPS3: unknown parameter 'cpu0.x'"; exit 1 ;;
  checkout_failed) echo 'Failed to checkout: feature SystemC_Cortex-M55, result: -15'; exit 1 ;;
  waits_for_licence) echo 'License checkout failed, trying again in 60 s'; exec sleep 600 ;;
  exception) thrown; kill -ABRT $$ ;;
  exception_told) thrown; echo 'Aborted (core dumped)'; exit 134 ;;
  crashes_silently) kill -SEGV $$ ;;
  killed_at_start) kill -KILL $$ ;;
  only_terminals) banner | head -1 ;;
  only_banner_exit_1) banner; exit 1 ;;
  exits_0_silently) exit 0 ;;
  exits_1_silently) exit 1 ;;
  exits_126) echo "/bin/sh: 1: $0: Permission denied"; exit 126 ;;
  unknown_error_number) echo 'Error: (E512) no such component'; exit 127 ;;
  host_disk_full) echo 'fwrite failed: No space left on device'; exit 1 ;;
  no_display) echo 'xterm: Xt error: Can'"'"'t open display: :0'; exit 1 ;;
  traceback)
    printf 'Traceback (most recent call last):\n  File "iris.py", line 3\nModuleNotFoundError: x\n'
    exit 1 ;;
  cannot_open_application) echo 'Error: cannot open application firmware.elf'; exit 1 ;;
  floods_and_dies) yes 'Warning: something else' | head -c 300000; exit 1 ;;
  limit_before_a_word) banner; limit ;;
  # It fails while the guest runs.
  exception_amid) loaded; thrown; kill -ABRT $$ ;;
  licence_lost) loaded; echo 'Error: the license was lost: no heartbeat'; exit 1 ;;
  component_error_amid) loaded; printf 'Error: FVP_MPS3: ethosu: bad access\n'; exit 1 ;;
  exits_127_amid) loaded; exit 127 ;;
  # It fails when the guest has ended.
  exception_after) pass; thrown; kill -ABRT $$ ;;
  killed_after) pass; kill -KILL $$ ;;
  exits_1_after) pass; exit 1 ;;
  licence_after) pass; echo 'License check-in failed: error -96'; exit 1 ;;
  component_error_after) pass; echo 'Error: FVP_MPS3: mps3_board.uart0: cannot close file' ;;
  *) echo "no such ending: $ending" >&2; exit 99 ;;
esac
