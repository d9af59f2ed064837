"""What tools print when a build stops before its link: the log, the kind of failure, and
words of the fix."""

from __future__ import annotations

# Each as the tool prints it: Zephyr 4.1.0's scripts, GCC 12, binutils, sh and bash.
STOPPED_BUILDS = {
    "a text without quotes": (
        "/a/prj.conf:4: warning: malformed string literal in assignment to KERNEL_BIN_NAME "
        "(defined at Kconfig.zephyr:650). Assignment ignored.\n\n"
        "error: Aborting due to Kconfig warnings\n",
        "kconfig",
        'CONFIG_KERNEL_BIN_NAME="..."',
    ),
    "an application's Kconfig without Zephyr's": (
        "/z/boards/arm/mps3/mps3_corstone300_an547_defconfig:8: warning: attempt to assign the "
        "value 'y' to the undefined symbol RUNTIME_NMI\n\n"
        "error: Aborting due to Kconfig warnings\n",
        "kconfig",
        'source "Kconfig.zephyr"',
    ),
    "a device that is not enabled": (
        "/z/include/zephyr/device.h:96:41: error: '__device_dts_ord_50' undeclared (first use in "
        "this function); did you mean '__device_dts_ord_10'?\n"
        "/a/main.c:10:15: note: in expansion of macro 'DEVICE_DT_GET'\n",
        "devicetree",
        "without its device in /a/main.c:10",
    ),
    "an alias": (
        "/z/device.h:96:41: error: '__device_dts_ord_DT_N_ALIAS_my_led_P_gpios_IDX_0_PH_ORD' "
        "undeclared here (not in a function)\n",
        "devicetree",
        "with `-` where C has `_`",
    ),
    "a compiler that is not there": (
        "CMake Error at /z/cmake/compiler/gcc/generic.cmake:9 (message):\n"
        "  Zephyr was unable to find the toolchain.  Is the environment misconfigured?\n\n"
        "  User-configuration:\n\n"
        "  ZEPHYR_TOOLCHAIN_VARIANT: cross-compile\n\n  Internal variables:\n\n"
        "  CROSS_COMPILE: /opt/none/arm-none-eabi-\n\n  TOOLCHAIN_HOME:\n\n",
        "toolchain",
        "Install /opt/none/arm-none-eabi-gcc, or correct what says where it is (CROSS_COMPILE",
    ),
    "a node label": (
        "/z/devicetree.h:196:36: error: 'DT_N_NODELABEL_probe1_P_rate' undeclared here (not in a "
        "function); did you mean 'DT_N_NODELABEL_probe0'?\n"
        "/a/main.c:7:14: note: in expansion of macro 'DT_PROP'\n",
        "devicetree",
        "Correct the node label probe1 in /a/main.c:7",
    ),
    "a property": (
        "/b/devicetree_generated.h:451:32: error: 'DT_N_S_probe_P_rate_hz' undeclared here (not in "
        "a function); did you mean 'DT_N_S_probe_P_rate'?\n"
        "/a/main.c:7:14: note: in expansion of macro 'DT_PROP'\n",
        "devicetree",
        "Correct the property rate_hz in /a/main.c:7",
    ),
    "blanks around =": (
        "/a/prj.conf:3: warning: attempt to assign the value ' y' to the undefined symbol LOG \n\n"
        "error: Aborting due to Kconfig warnings\n",
        "kconfig",
        "Write CONFIG_LOG=y in /a/prj.conf:3, without blanks",
    ),
    "a binding that is no YAML": (
        "devicetree error: '/a/dts/bindings/p.yaml' appears in binding directories but isn't valid "
        'YAML: while parsing a block mapping\n  in "<unicode string>", line 5, column 3\ndid not '
        'find expected key\n  in "<unicode string>", line 11, column 4\n',
        "binding",
        "Correct /a/dts/bindings/p.yaml:11",
    ),
    "an #error of a header": (
        "src/core.h:7:2: error: #error Which core?\n",
        "compile",
        "the #if above src/core.h:7",
    ),
    "a compiler that crashes": (
        "src/dsp.c:9:1: internal compiler error: in emit_move, at expr.c:12\n",
        "toolchain",
        "another version of the compiler",
    ),
    "a compiler that was killed while it wrote": (
        "{standard input}:12: Error: unknown pseudo-op: `.lo'\n"
        "g++: internal compiler error: Killed (program cc1plus)\n",
        "memory",
        "make -j1",
    ),
    "an option for armclang alone": (
        "Fatal error: A3900U: Unrecognized option '--target=arm'.\n",
        "toolchain",
        "to armclang alone",
    ),
    "armclang without a core": (
        "armclang: fatal error: no target architecture given; use --target=...\n",
        "toolchain",
        "-mcpu=CORE",
    ),
    "a call that the compiler refuses": (
        "arm-none-eabi-gcc: error: -E or -x required when input is from standard input\n",
        "toolchain",
        "what arm-none-eabi-gcc names",
    ),
    "a source that is not there": (
        "arm-none-eabi-gcc: error: src/nothing.c: No such file or directory\n",
        "compile",
        "Correct the path of src/nothing.c",
    ),
    "a path of Windows in the devicetree": (
        "devicetree error: C:\\app\\my.overlay:4 (column 1): parse error: undefined node label "
        "'i2c9'\n",
        "devicetree",
        "my.overlay:4",
    ),
    "a node without its number of cells": (
        "devicetree error: <Node /power in '/z/misc/empty_file.c'> lacks #power-domain-cells\n",
        "devicetree",
        "Give /power `#power-domain-cells = <N>;`",
    ),
    "a binding with more cells than its node": (
        "devicetree error: unexpected 'pwm-cells:' length in binding for <Node /pwm in '/z/x.dts'> "
        "- 3 instead of 2\n",
        "devicetree",
        "Give /pwm `#pwm-cells = <3>;`",
    ),
    "what a project asks for": (
        "CMake Error at CMakeLists.txt:9 (message):\n  MODEL_FILE must be set to a .pte file.\n",
        "cmake",
        "cmake -DMODEL_FILE=VALUE",
    ),
    "a tool of the toolchain": (
        "CMake Error at /z/cmake/extensions.cmake:9 (message):\n"
        "  No such file or directory: CMAKE_OBJCOPY: 'CMAKE_OBJCOPY-NOTFOUND'\n",
        "toolchain",
        "where the toolchain is",
    ),
    "a file that a variable names": (
        "CMake Error at /z/cmake/extensions.cmake:9 (message):\n"
        "  No such file or directory: EXTRA_FILE: 'a.conf'\n",
        "cmake",
        "-DEXTRA_FILE=PATH",
    ),
    "a compiler that cannot link": (
        "CMake Error at /c/CMakeTestCCompiler.cmake:9 (message):\n  The C compiler\n\n"
        '    "/b/gcc"\n'
        "\n  is not able to compile a simple test program.\n",
        "toolchain",
        "CMAKE_TRY_COMPILE_TARGET_TYPE",
    ),
    "no compiler": (
        "CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_C_COMPILER could be found.\n",
        "toolchain",
        "-DCMAKE_C_COMPILER=PATH",
    ),
    "no ninja": (
        'CMake Error: CMake was unable to find a build program corresponding to "Ninja".  '
        "CMAKE_MAKE_PROGRAM is not set.\n",
        "cmake",
        "Install ninja",
    ),
    "another generator": (
        "CMake Error: Error: generator : Ninja\n"
        "Does not match the generator used previously: Unix Makefiles\n"
        "Either remove the CMakeCache.txt file or choose a different binary directory.\n",
        "cmake",
        '-G "Unix Makefiles"',
    ),
    "a build directory that was moved": (
        "CMake Error: The current CMakeCache.txt directory /b/new/CMakeCache.txt is different than "
        "the directory /b/old where CMakeCache.txt was created.\n",
        "cmake",
        "Delete CMakeCache.txt",
    ),
    "a folder that is no project": (
        'CMake Error: The source directory "/a/doc" does not appear to contain CMakeLists.txt.\n',
        "cmake",
        "instead of /a/doc",
    ),
    "spaces in a makefile": (
        "Makefile:12: *** missing separator.  Stop.\n",
        "make",
        "with a tab",
    ),
    "no rule": (
        "make: *** No rule to make target 'src/a.c', needed by 'a.o'.  Stop.\n",
        "make",
        "Correct src/a.c",
    ),
    "a makefile that gives up": (
        "board.mk:3: *** BOARD is not one of: a b.  Stop.\n",
        "make",
        "what board.mk:3 asks for",
    ),
    "Kconfig without its own message": (
        "CMake Error at /z/cmake/modules/kconfig.cmake:9 (message):\n"
        "  command failed with return code: 1\n",
        "kconfig",
        "`error:` and `warning:` above",
    ),
    "Kconfig with a warning alone": (
        "warning: CACHE (defined at drivers/Kconfig:9) was assigned the value 'y' but got the "
        "value 'n'. Check these unsatisfied dependencies: DMA (=n).\n\n"
        "CMake Error at /z/cmake/modules/kconfig.cmake:9 (message):\n"
        "  command failed with return code: 1\n",
        "kconfig",
        "Set CONFIG_DMA=y too, beside CONFIG_CACHE=y",
    ),
    "Clang without code for a source": (
        "fatal error: error in backend: Cannot select: intrinsic %llvm.arm.neon\n",
        "toolchain",
        "inline assembler must be of that core too",
    ),
    "a devicetree source without a name": (
        "devicetree error: parse error: expected ';'\n",
        "devicetree",
        "that was read last",
    ),
    "a compiler that a project looks for": (
        "CMake Error at tools/find.cmake:2 (message):\n  Compiler 'arm-none-eabi-gcc' not found.\n",
        "toolchain",
        "Install arm-none-eabi-gcc",
    ),
    "a complaint of a project's own": (
        "CMake Error at tools/model.cmake:2 (message):\n  The model has no input.\n",
        "cmake",
        "complains of: The model has no input.",
    ),
    "clang, killed": (
        "clang++: error: unable to execute command: Killed\n",
        "memory",
        "make -j1",
    ),
    "clang, crashed": (
        "clang: error: clang frontend command failed due to signal (use -v to see invocation)\n",
        "toolchain",
        "another version of clang",
    ),
    "a compiler without C++": (
        "arm-none-eabi-g++: fatal error: cannot execute 'cc1plus': execvp: No such file or "
        "directory\n",
        "toolchain",
        "Install the package that has cc1plus",
    ),
    "a project that is not fetched": (
        "FATAL ERROR: project sub (tools/sub): cannot import contents of west.yml; do you need to "
        'run "west update"?\n',
        "workspace",
        "Run `west update`",
    ),
    "a fetch that fails": (
        "FATAL ERROR: Command 'git fetch -f -- https://h/x' failed for x (modules/x)\n",
        "workspace",
        "git's message above",
    ),
    "a preprocessor of armasm": (
        "boot.S: Error: A1905U: Pre-processor step failed for 'A SETA 1'\n",
        "compile",
        "needs quotes",
    ),
    "a traceback by itself": (
        "Traceback (most recent call last):\n"
        '  File "/z/scripts/gen.py", line 80, in <module>\n    open(name)\n'
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.o'\nninja: build stopped\n",
        "python",
        "a newer version of that checkout",
    ),
    "a header of POSIX": (
        "/a/main.c:3:10: fatal error: pthread.h: No such file or directory\n",
        "compile",
        "CONFIG_POSIX_API=y",
    ),
    "a header of CMSIS-DSP": (
        "/a/main.c:3:10: fatal error: arm_math.h: No such file or directory\n",
        "compile",
        "CONFIG_CMSIS_DSP=y",
    ),
    "a header of the C++ library": (
        "/a/shape.cpp:1:10: fatal error: vector: No such file or directory\n",
        "toolchain",
        "CONFIG_REQUIRES_FULL_LIBCPP=y",
    ),
    "an interrupt that the board does not have": (
        "gen_isr_tables.py: error: IRQ 4000 (offset=0) exceeds the maximum of 127\n",
        "isr_table",
        "IRQ_CONNECT or IRQ_DIRECT_CONNECT of interrupt 4000",
    ),
    "a block of CMake's without its end": (
        "CMake Error at CMakeLists.txt:6 (if):\n"
        "  Flow control statements are not properly nested.\n",
        "cmake",
        "endif()",
    ),
    "two libraries of one name": (
        "CMake Error at /z/kernel/CMakeLists.txt:135 (add_library):\n  add_library cannot create "
        'target "kernel" because another target with\n  the same name already exists. '
        ' The existing target is a static library\n  created in source directory "/a/module".\n',
        "cmake",
        "Give the library in /a/module/CMakeLists.txt another name",
    ),
    "an option of another compiler": (
        "arm-none-eabi-gcc: error: unrecognized command-line option '-mfast-helium'\n",
        "toolchain",
        "Take -mfast-helium out",
    ),
    "an exception": (
        "/a/shape.cpp:1:51: error: exception handling disabled, use '-fexceptions' to enable\n",
        "compile",
        "CONFIG_CPP_EXCEPTIONS=y",
    ),
    "a dynamic_cast": (
        "/a/shape.cpp:2:68: error: 'dynamic_cast' not permitted with '-fno-rtti'\n",
        "compile",
        "CONFIG_CPP_RTTI=y",
    ),
    "module.yml": (
        'ERROR: Malformed "build" section in file: /m/zephyr/module.yml\n'
        "build.cmake: no such key\n",
        "module",
        "Correct /m/zephyr/module.yml",
    ),
    "the folder of a module": (
        'ERROR: "cmake" key in /m/zephyr/module.yml has folder value "src" which does not contain '
        "a CMakeLists.txt file.\n",
        "module",
        "`cmake:` in /m/zephyr/module.yml",
    ),
    "an interrupt twice": (
        "gen_isr_tables.py: error: multiple registrations at table_index 7 for irq 7 (0x7)\n"
        "Existing handler 0x1, new handler 0x2\n",
        "isr_table",
        "IRQ_DIRECT_CONNECT for interrupt 7",
    ),
    "too many handlers": (
        "gen_isr_tables.py: error: Reached shared interrupt client limit. Maybe increase\n",
        "isr_table",
        "CONFIG_SHARED_IRQ_MAX_NUM_CLIENTS",
    ),
    "an interrupt twice, as older releases say it": (
        "gen_isr_tables.py: multiple registrations for irq 85 (0x55)\n"
        "Traceback (most recent call last):\n",
        "isr_table",
        "IRQ_DIRECT_CONNECT for interrupt 85",
    ),
    "a brace that is not closed": (
        "devicetree error: /z/misc/empty_file.c:1 (column 1): parse error: expected node "
        "name, property "
        "name, or '}'\n",
        "devicetree",
        "Add the missing `};`",
    ),
    "a label on two nodes": (
        "devicetree error: Label 'npu0' appears on /soc/a@1 and on /soc/b@2\n",
        "devicetree",
        "write `&npu0 { ... };`",
    ),
    "a module whose Kconfig this Zephyr does not have": (
        "/z/scripts/kconfig/kconfig.py: build/Kconfig.modules:134: Could not open '/z/' "
        "(in 'osource "
        '"$(ZEPHYR_NN_KCONFIG)"\') (EISDIR: Is a directory)\n',
        "module",
        "or take the project of NN out of the manifest",
    ),
    "a variable in a Kconfig file that is not set": (
        "/z/scripts/kconfig/kconfig.py: app/Kconfig:3: Could not open '/z/Kconfig.io' "
        "(in 'source \"$(IO_DIR)/Kconfig.io\"')\n",
        "kconfig",
        "Set IO_DIR",
    ),
    "a folder that a checkout of Zephyr lacks": (
        "/z/scripts/kconfig/kconfig.py: drivers/i2c/Kconfig:119: 'drivers/i2c/target/Kconfig' not "
        "found (in 'source \"drivers/i2c/target/Kconfig\"'). Check that environment variables\n",
        "workspace",
        "may leave drivers/i2c/target/Kconfig out",
    ),
    "a module that is newer than Zephyr": (
        "CMake Error at /z/cmake/zephyr_module.cmake:66 (message):\n"
        '  ERROR: Malformed "build" section in file:\n  /m/hal/zephyr/module.yml\n\n'
        "  <SchemaError: error code 2: Schema validation failed:\n\n"
        "   - Key 'name' was not defined.  Path: ''.: Path: '/'>\n",
        "module",
        "or a newer Zephyr; else correct name in /m/hal/zephyr/module.yml",
    ),
    "Kconfig's warnings that are not in the log": (
        "error: Aborting due to Kconfig warnings\n",
        "kconfig",
        "Look for `warning:`",
    ),
    "a script that fails by itself": (
        "CMake Error at /z/cmake/modules/a.cmake:45 (message):\n"
        "  Traceback (most recent call last):\n"
        "    File \"/z/scripts/a.py\", line 2, in <module>\n      main()\n  KeyError: 'npu'\n",
        "python",
        "a newer version of that checkout",
    ),
    "a command of west that cannot be loaded": (
        'FATAL ERROR: extension command "build" couldn\'t be run\n'
        "  Hint: could not import /z/scripts/west_commands/build.py\n",
        "python",
        "requirements.txt",
    ),
    "too few numbers behind a label": (
        "devicetree error: missing data after phandle in <Property 'gpios' at '/meter/led_0' in "
        "'/z/misc/empty_file.c'>\n",
        "devicetree",
        "Give gpios of the node /meter/led_0 a number for each cell",
    ),
    "a chosen node that is not named": (
        "/z/device.h:96:41: error: '__device_dts_ord_DT_CHOSEN_zephyr_uart_pipe_ORD' "
        "undeclared here (not in a function)\n",
        "devicetree",
        "Name the node zephyr_uart_pipe in an overlay",
    ),
    "a module.yml that is no YAML": (
        "CMake Error at /z/cmake/modules/zephyr_module.cmake:73 (message):\n"
        "  Traceback (most recent call last):\n\n"
        '    File "/z/scripts/zephyr_module.py", line 910, in <module>\n      main()\n'
        '    File "yaml/_yaml.pyx", line 867, in yaml._yaml.CParser._parse_next_event\n\n'
        "  yaml.parser.ParserError: while parsing a block mapping\n\n"
        '    in "<unicode string>", line 1, column 1\n\n  did not find expected key\n\n'
        '    in "<unicode string>", line 4, column 2\n\n',
        "module",
        "Correct line 4",
    ),
    "a file that asks for a newer C++": (
        'src/part.cpp:5:2: error: #error "this file wants C++20"\n',
        "compile",
        "Set CONFIG_STD_CPP20=y in prj.conf",
    ),
    "an application without Zephyr": (
        "CMake Error at CMakeLists.txt:3 (target_sources):\n"
        '  Cannot specify sources for target "app" which is not built by this project.\n',
        "cmake",
        "Write `find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})` before project()",
    ),
    "a version that nobody gave": (
        "main.c:3:10: fatal error: app_version.h: No such file or directory\n",
        "compile",
        "Write a file VERSION in the application's folder",
    ),
    "spec files of one's own": (
        "arm-none-eabi-gcc: fatal error: cannot read spec file 'app.specs': No such "
        "file or directory\n",
        "toolchain",
        "Correct the path of app.specs in --specs",
    ),
    "no spec file": (
        "arm-none-eabi-gcc: fatal error: cannot read spec file 'nano.specs': No such "
        "file or directory\n",
        "toolchain",
        "libnewlib-arm-none-eabi",
    ),
    "no such core": (
        "arm-none-eabi-gcc: error: unrecognized -mcpu target: cortex-m99\n",
        "toolchain",
        "Correct cortex-m99",
    ),
    "no such compiler": (
        "CMake Error at CMakeLists.txt:5 (project):\n  The CMAKE_C_COMPILER:\n\n    arm-gcc-99\n\n"
        "  is not a full path and was not found in the PATH.\n",
        "toolchain",
        "Install arm-gcc-99",
    ),
    "no devicetree compiler": (
        "CMake Error at /z/cmake/modules/dts.cmake:355 (message):\n"
        "  command failed with return code: No such file or directory\n",
        "toolchain",
        "dtc",
    ),
    "no C library": (
        "/x/include/stdint.h:9:16: fatal error: stdint.h: No such file or directory\n",
        "toolchain",
        "libnewlib-arm-none-eabi",
    ),
    "no C++ library": (
        "src/a.cpp:1:10: fatal error: cstdint: No such file or directory\n",
        "toolchain",
        "libstdc++-arm-none-eabi-newlib",
    ),
    "an instruction of another core": (
        "start.S: Assembler messages:\nstart.S:3: Error: selected processor does not "
        "support `vpush {s0}' "
        "in Thumb mode\n",
        "compile",
        "-mcpu (and -mfpu",
    ),
    "another architecture's assembler": (
        'copy.S: Assembler messages:\ncopy.S:4: Error: unrecognized symbol type ""\n',
        "compile",
        "%function instead of @function",
    ),
    "an instruction of the compiler's": (
        "/tmp/ccFX9k.s: Assembler messages:\n"
        "/tmp/ccFX9k.s:87: Error: syntax error -- `vcvt d0,s0'\n",
        "compile",
        "the source that make or ninja names",
    ),
    "initialisation priorities": (
        "ERROR: Device initialization priority validation failed, the sequence of initialization "
        "calls does not match the devicetree dependencies.\nERROR: /soc/i2c@1 <i2c_init> is "
        "initialized before its dependency /soc/gpio@2 <gpio_init> (PRE_KERNEL_1+0 < "
        "POST_KERNEL+5)\n",
        "init_priority",
        "later priority than POST_KERNEL+5",
    ),
    "a killed compiler": (
        "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
        "memory",
        "-j1",
    ),
    "a killed compiler, by its path": (
        "arm-none-eabi-gcc: fatal error: Killed signal terminated program /opt/bin/cc1\n",
        "memory",
        "-j1",
    ),
    "no memory": (
        "cc1: out of memory allocating 65536 bytes after a total of 1 bytes\n",
        "memory",
        "-j1",
    ),
    "dash": ("sh: 1: west: not found\n", "workspace", "pip install west"),
    "bash": ("build.sh: line 3: west: command not found\n", "workspace", "pip install west"),
    "the assembler, above make's words": (
        "/tmp/cc1.s: Assembler messages:\nstart.S:12: Error: bad instruction `vmow r0'\n"
        "make[2]: *** [Makefile:3: start.o] Error 1\n",
        "compile",
        "Correct start.S:12",
    ),
    "a path of Windows": (
        "C:\\app\\src\\main.c:3:5: error: expected ';' before 'return'\n",
        "compile",
        "Correct C:\\app\\src\\main.c:3",
    ),
    "CMake in a build within a build": (
        "    CMake Error at boot/CMakeLists.txt:7 (add_subdirectory):\n      add_subdirectory "
        'given source "nn" which is not an\n      existing directory.\n\n'
        "[3/9] Performing configure step\n",
        "cmake",
        "boot/CMakeLists.txt:7",
    ),
    "an instruction, without the assembler's file": (
        "src/fir.cc\nError: instruction not allowed in IT block -- `vaddlt.f32 s1,s1,s2'\n",
        "compile",
        "Check -mcpu",
    ),
    "a header, without the source that includes it": (
        "make -f Makefile demo\nfatal error: BOARD9.h: No such file or directory\n",
        "compile",
        "Add the folder that has BOARD9.h",
    ),
    "a makefile that another one includes": (
        "make: *** No rule to make target '/opt/sdk/gcc/Makefile.common'.  Stop.\n",
        "make",
        "Correct the path of /opt/sdk/gcc/Makefile.common",
    ),
    "a compiler that xargs does not find": (
        "xargs: arm-none-eabi-gcc: No such file or directory\nmake: *** [q.i] Error 127\n",
        "toolchain",
        "Install arm-none-eabi-gcc",
    ),
    "a compiler that a script does not find": (
        "GEN q.i\n[Errno 2] No such file or directory: 'arm-none-eabi-gcc'\n",
        "toolchain",
        "Install arm-none-eabi-gcc",
    ),
    "an assertion at compile time": (
        '/z/toolchain/gcc.h:87:36: error: static assertion failed: "the stack is too small"\n',
        "compile",
        "the value, option or type that it is about: the stack is too small",
    ),
    "a macro that lost its -D": (
        "arm-none-eabi-gcc: error: BOARD_NN1: No such file or directory\n",
        "compile",
        "(-DBOARD_NN1)",
    ),
    "options in one word": (
        "riscv64-elf-gcc: error:  -march=rv32 -mabi=ilp32 : No such file or directory\n",
        "compile",
        "blanks that make one word of several options",
    ),
    "a tool of the project's that is not built": (
        "PACK rom.bin\nmake: ../tools/pack: Command not found\nmake: *** [rom.bin] Error 127\n",
        "toolchain",
        "first if it is a tool of the project's own",
    ),
    "a CMake that has forgotten old ones": (
        "| CMake Error at nn/CMakeLists.txt:2 (cmake_minimum_required):\n"
        "|   Compatibility with CMake < 3.5 has been removed from CMake.\n|\n"
        "|   Update the VERSION argument <min> value.\n",
        "version",
        "nn/CMakeLists.txt:2 to 3.5 or newer, configure with -DCMAKE_POLICY_VERSION_MINIMUM=3.5",
    ),
    "a manifest that imports what is not fetched": (
        "FATAL ERROR: failed manifest import in sdk (nn-sdk)\n"
        '  Failed importing "west.yml" from revision "ab1"\n',
        "workspace",
        "west update",
    ),
    "Twister's own words": (
        "ERROR   - b_board    tests/nn/nn.basic FAILED: Build failure\n"
        "ERROR   - see: /t/b_board/nn.basic/build.log\n",
        "not_known",
        "hil link explain /t/b_board/nn.basic/build.log",
    ),
    "a compiler that make does not find": (
        "make[2]: arm-none-eabi-gcc: Command not found\nmake: *** [fw.o] Error 127\n",
        "toolchain",
        "Install arm-none-eabi-gcc",
    ),
    "a compiler that make's shell does not find": (
        "/bin/sh: 1: /opt/gcc/bin/arm-none-eabi-g++: not found\nmake: *** [fw.o] Error 127\n",
        "toolchain",
        "Install /opt/gcc/bin/arm-none-eabi-g++",
    ),
    "an assembler that is no file": (
        "make: arm-none-eabi-as: No such file or directory\nmake: *** [boot.o] Error 1\n",
        "toolchain",
        "Install arm-none-eabi-as",
    ),
    "a target that the makefile does not have": (
        "make[1]: *** No rule to make target 'flash_all'.  Stop.\n",
        "make",
        "Run make in the folder whose makefile has flash_all",
    ),
    "a target that another one needs, in other quotes": (
        'make:*** no rule to make target "gen/table.c",needed by "project"\n',
        "make",
        "Correct gen/table.c",
    ),
    "a module of Python 2's message": (
        'Traceback (most recent call last):\n  File "/t/gen.py", line 5, in <module>\n'
        "    import yaml\nImportError: No module named yaml\n",
        "python",
        "Install yaml",
    ),
    "a program that CMake had found before": (
        "CMake Error at CMakeLists.txt:3 (project):\n  Running\n\n   '/old/bin/ninja' '--version'"
        "\n\n  failed with:\n\n   No such file or directory\n\n",
        "toolchain",
        "Install /old/bin/ninja, and configure in an empty build directory",
    ),
    "a build within the build": (
        "CMake Error at /b/nn-stamp/nn-build.cmake:49 (message):\n  Command failed: 2\n\n"
        "   'make' '-j4'\n\n  See also\n\n    /b/nn-stamp/nn-build-out.log\n\n",
        "cmake",
        "Read /b/nn-stamp/nn-build-out.log",
    ),
    "a submodule that is not there": (
        'CMake Error: The source directory "/s/third-party/fb" does not appear to contain '
        "CMakeLists.txt.\n",
        "cmake",
        "git submodule update --init",
    ),
    "a submodule that is not there, as add_subdirectory says it": (
        "CMake Error at CMakeLists.txt:9 (add_subdirectory):\n  The source directory\n\n"
        "    /s/third-party/pool\n\n  does not contain a CMakeLists.txt file.\n\n",
        "cmake",
        "instead of /s/third-party/pool; if another repository belongs there",
    ),
    "a target that nothing creates": (
        "CMake Error at nn.cmake:18 (add_dependencies):\n  The dependency target "
        '"fb::fb" of target\n  "nn_model" does not exist.\n',
        "cmake",
        "Correct fb::fb in nn.cmake:18",
    ),
    "a line in Markdown's quotes": (
        "`src/a.c:3:10: fatal error: gen/b.h: No such file or directory\n",
        "compile",
        "correct the name in src/a.c:3",
    ),
    "a server that git does not trust": (
        "fatal: unable to access 'https://git.test/driver.git/': server certificate verification "
        "failed. CAfile: none CRLfile: none\n",
        "workspace",
        "(network, proxy, certificates: server certificate verification failed)",
    ),
    "a tool that bash does not find by its path": (
        "/usr/bin/bash: line 1: tools/mkrom: No such file or directory\n"
        "make: *** [rules.mk:5: rom.h] Error 127\n",
        "toolchain",
        "Install tools/mkrom",
    ),
    "a tool that make does not find on Windows": (
        "process_begin: CreateProcess(NULL, uname -s, ...) failed.\nrules.mk:4: pipe: No error\n"
        "process_begin: CreateProcess(NULL, python3 gen.py out.h, ...) failed.\n"
        "make (e=2): Le fichier est introuvable.\nmake: *** [rules.mk:9: out.h] Error 2\n",
        "toolchain",
        "Install python3",
    ),
    "a file that ninja cannot make": (
        "ninja: error: 'tools/pack', needed by 'gen/rom.h', missing and no known rule to make it\n",
        "make",
        "Correct tools/pack",
    ),
    "a Kconfig file that is not there": (
        'Kconfig:70: can\'t open file "/apps/Kconfig"\nmake: *** [oldconfig] Error 1\n',
        "kconfig",
        "which Kconfig:70 names it",
    ),
    "a Kconfig file of a newer language": (
        "arch/nn/Kconfig:12: syntax error\narch/nn/Kconfig:11: invalid option\n",
        "kconfig",
        "Correct arch/nn/Kconfig:12",
    ),
    "a header that may be Zephyr's": (
        "src/main.c:3:10: fatal error: drivers/uart.h: No such file or directory\n",
        "compile",
        "write #include <zephyr/drivers/uart.h> in src/main.c:3",
    ),
    "a submodule with changes": (
        "Aborting\nfatal: Unable to checkout 'ab12' in submodule path 'lib/nn'\n"
        "make: *** [Makefile:2: submodules] Error 1\n",
        "workspace",
        "git -C lib/nn stash -u",
    ),
    "a program for another machine": (
        "tc/bin/arm-none-eabi-gcc: 1: tc/bin/arm-none-eabi-gcc: Syntax error: word unexpected\n"
        "make: *** [a.o] Error 2\n",
        "toolchain",
        "Take tc/bin/arm-none-eabi-gcc of a toolchain that is built for this machine",
    ),
    "the assembler of this machine": (
        "as: unrecognized option '-mcpu=cortex-m0'\nmake[2]: *** [a.c.obj] Error 1\n",
        "toolchain",
        "binutils-arm-none-eabi",
    ),
    "an interpreter that env does not find": (
        "/usr/bin/env: \u2018python\u2019: No such file or directory\nmake: *** [q.h] Error 127\n",
        "toolchain",
        "Install python",
    ),
    "a makefile that is not there": (
        "make: *** No targets specified and no makefile found.  Stop.\n",
        "make",
        "Call make in the folder that has one",
    ),
    "make in French": (
        "make: *** Aucune r\u00e8gle pour fabriquer la cible \u00ab rom.bin \u00bb, "
        "n\u00e9cessaire pour \u00ab all \u00bb. Arr\u00eat.\n",
        "make",
        "Correct rom.bin",
    ),
    "make in German": (
        "make: *** Keine Regel, um \u201erom.bin\u201c, "
        "ben\u00f6tigt von \u201eall\u201c, zu erstellen.\n",
        "make",
        "Correct rom.bin",
    ),
    "a tool for a newer system": (
        "./arm-none-eabi-gcc: /lib/libc.so.6: version `GLIBC_2.99' not found (required by "
        "./arm-none-eabi-gcc)\nmake: *** [m.o] Error 1\n",
        "toolchain",
        "built for this system",
    ),
    "a tool without its library": (
        "arm-none-eabi-gdb: error while loading shared libraries: libq.so.5: cannot open shared "
        "object file: No such file or directory\n",
        "toolchain",
        "Install the package that has libq.so.5",
    ),
    "a makefile that make does not understand": (
        "nn/build.make:212: *** target pattern contains no `%'.  Stop.\n",
        "make",
        "Correct nn/build.make:212",
    ),
    "specs, as an old GCC says it": (
        "arm-none-eabi-gcc: error: nosys.specs: No such file or directory\n",
        "toolchain",
        "Install newlib",
    ),
    "an object without its source": (
        "make: *** No rule to make target 'out/start.o', needed by 'all'.  Stop.\n",
        "make",
        "Write or check out that source",
    ),
    "Arm's instructions in the assembler of a PC": (
        "inc/core.h:86: Error: no such instruction: `isb 0xF'\n",
        "compile",
        "in CMake with its toolchain file",
    ),
    "another tool's prefix": (
        "E: main.c:3:5: error: 'x' undeclared\n",
        "compile",
        "Correct main.c:3",
    ),
}
