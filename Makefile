# leat: `make help` lists the targets. A target that needs Debian packages installs them first and does the
# rest in a sub-make, so that every target works on a machine that has nothing but make.

ifeq ($(origin CC),default)
CC = gcc
endif
BUILD ?= build$(if $(SAN),-san)
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
FUZZ_SECONDS ?= 60
CHAOS_SECONDS ?= 60
FAILOVER_TIMES ?= 10
CHAOS_FAULTS ?= all
VERSION = 0.2.0
# what --version names beside it: nothing if this is the release, else the commit. make dist writes the file.
COMMIT = $(eval COMMIT := $(firstword $(shell cat .commit 2>/dev/null || tests/tools/commit $(VERSION) 2>/dev/null) \
	unknown))$(COMMIT)

# ---- installation folders, with the names of the GNU coding standards; PREFIX is another name of prefix. The
# programs and the unit look for QUEUE.ini in sysconfdir/leat.
PREFIX ?= /usr/local
DESTDIR ?=
prefix = $(PREFIX)
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
# Debian has the manual of leatd in section 8, and root is not the only one who runs it
sbindir = $(bindir)
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
docdir = $(datarootdir)/doc/leat
# examples run from here, so they are no documentation: packagers compress that and drop its run bits
examplesdir = $(datadir)/leat/examples
clientsdir = $(datadir)/leat/clients
sysconfdir = /etc
unitdir = $(prefix)/lib/systemd/system
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
catalogdir = $(prefix)/lib/systemd/catalog
completionsdir = $(datadir)/bash-completion/completions
zshcompletionsdir = $(datadir)/zsh/site-functions
fishcompletionsdir = $(datadir)/fish/vendor_completions.d

# ---- Debian packages
BUILD_PACKAGES = gcc libc6-dev pkgconf libhiredis-dev libev-dev libinih-dev libsystemd-dev \
	libjansson-dev libseccomp-dev libssl-dev libmicrohttpd-dev libncurses-dev
DEB_PACKAGES = $(BUILD_PACKAGES) build-essential debhelper po-debconf
REPRO_PACKAGES = $(DEB_PACKAGES) locales python3
DEMO_PACKAGES = redis-server redis-tools
CHECK_PACKAGES = $(DEMO_PACKAGES) zsh fish runit tini node-redis node-typescript mypy ruby ruby-redis \
	php-cli php-redis autopkgtest libcmocka-dev python3-pytest python3-pytest-xdist python3-redis curl \
	procps systemd-container openssl systemd-journal-remote logrotate stunnel4 mandoc prometheus \
	python3-prometheus-client chromium chromium-driver python3-selenium tmux
CHAOS_PACKAGES = iproute2 nftables
NIGHTLY_PACKAGES = user-mode-linux kmod
LINT_PACKAGES = clang clang-tidy clang-format cppcheck shellcheck flake8 lua-check lintian mandoc systemd procps
MODEL_PACKAGES = gcc libc6-dev spin
FUZZ_PACKAGES = clang libclang-rt-14-dev
BENCH_PACKAGES = $(DEMO_PACKAGES) python3 python3-redis
PEER_PACKAGES = celery ruby-sidekiq

# ---- compiler and linker options
CFLAGS ?= $(if $(SAN),-O1,-O2) -g
comma = ,
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wformat=2 -Wundef $(if $(WERROR),-Werror)
SANITIZE = $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer)
# those of these options that the compiler has for this machine; it is asked once
supported = $(shell for option in $(1); do echo 'int x;' | $(CC) -Werror $$option -x c -c -o /dev/null - 2>/dev/null && \
	echo $$option; done)
PROTECT = $(eval PROTECT := $(call supported,-fstack-clash-protection -fcf-protection \
	$(if $(SAN),,-ftrivial-auto-var-init=zero)))$(PROTECT)
HARDEN = -fstack-protector-strong -fPIE $(PROTECT) \
	$(if $(SAN)$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
PKG_CONFIG ?= pkg-config
PACKAGES = $(if $(TLS),hiredis_ssl libssl) hiredis inih libsystemd jansson libcrypto libseccomp
# libev has no file for pkg-config
LIBEV ?= -lev

# These three are evaluated once, when they are first used: pkg-config may have to be installed before.
# TLS is built in if hiredis has it: version 1.0 or later, built with TLS; that of Debian 12 is not.
TLS = $(eval TLS := $(shell $(PKG_CONFIG) --exists hiredis_ssl libssl 2>/dev/null && echo yes))$(TLS)
PACKAGE_CFLAGS = $(eval PACKAGE_CFLAGS := $(call as-system,$(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)))$(PACKAGE_CFLAGS)
LIBRARIES = $(eval LIBRARIES := $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(LIBEV) -lm)$(LIBRARIES)
BOARD_LIBRARIES = $(eval BOARD_LIBRARIES := $(shell $(PKG_CONFIG) --libs libmicrohttpd))$(BOARD_LIBRARIES)
# Headers are included as <hiredis/…>; some versions name only the folder of that name.
as-system = $(patsubst -I%,-isystem %,$(1) $(filter-out -I/usr/include,$(patsubst %/hiredis,%,$(filter -I%/hiredis,$(1)))))

# Times after 2038 on 32-bit systems. client.c passes a time to hiredis, in the form of the system's libraries.
TIME64 = -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
$(BUILD)/src/redis/server/client.o: private TIME64 =

ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE $(TIME64) -DLEAT_VERSION='"$(VERSION)"' \
	-DLEAT_LIBRARY='"$(BUILD)/leat.lua"' -DLEAT_SYSCONFDIR='"$(sysconfdir)"' -Isrc $(WARNINGS) $(HARDEN) \
	$(if $(TLS),-DLEAT_TLS) $(SANITIZE) $(PACKAGE_CFLAGS) -ffile-prefix-map='$(CURDIR)'=. $(CPPFLAGS) $(CFLAGS) \
	$(DEFINE_COMMIT)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,--as-needed $(SANITIZE) $(LDFLAGS)

# sorted, so that the order of linking does not depend on the locale
SOURCES = $(sort $(wildcard src/*/*.c src/*/*/*.c))
UNIT_SOURCES = $(wildcard tests/unit/*/test_*.c)
FUZZ_SOURCES = $(wildcard tests/fuzz/fuzz_*.c)
object = $(patsubst %.c,$(BUILD)/%.o,$(1))

.PHONY: all help clean force check check-servers check-nightly run-check unit-tests inject demo bench bench-peers bench-scale failover chaos \
	chaos-seeds chaos-mutants fuzz run-fuzz model lint run-lint install install-files uninstall dist dist-clients deb repro print-version \
	deps deps-build deps-deb deps-dist deps-repro deps-demo deps-check deps-nightly deps-chaos deps-lint deps-bench deps-bench-peers deps-fuzz deps-model
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/leatd $(BUILD)/leat $(BUILD)/leat-board ## build leatd, leat and leat-board (options: CC=clang, WERROR=1, SAN=1)

# libleat.a has the layers that are not of one program; libdaemon.a, libcli.a and libboard.a have each program without its main,
# for unit tests.
LIB_SOURCES = $(filter $(addsuffix /%,$(addprefix src/,base config redis queue view exec)),$(SOURCES))
PROGRAM_SOURCES = $(filter-out %/main.c,$(filter src/$(1)/%,$(SOURCES)))
$(BUILD)/libleat.a: $(call object,$(LIB_SOURCES))
$(BUILD)/libdaemon.a: $(call object,$(call PROGRAM_SOURCES,daemon))
$(BUILD)/libcli.a: $(call object,$(call PROGRAM_SOURCES,cli))
$(BUILD)/libboard.a: $(call object,$(call PROGRAM_SOURCES,board))
# q (append, do not replace): files in different folders may have the same name
$(BUILD)/%.a:
	rm -f $@ && $(AR) qcs $@ $^

LINK = $(CC) $(ALL_LDFLAGS) -o $@ $^
$(BUILD)/leatd: $(BUILD)/src/daemon/main.o $(BUILD)/libdaemon.a $(BUILD)/libleat.a
	$(LINK) $(LIBRARIES)

$(BUILD)/leat: $(BUILD)/src/cli/main.o $(BUILD)/libcli.a $(BUILD)/libleat.a
	$(LINK) $(LIBRARIES)

$(BUILD)/leat-board: $(BUILD)/src/board/main.o $(BUILD)/libboard.a $(BUILD)/libleat.a
	$(LINK) $(LIBRARIES) $(BOARD_LIBRARIES)
# page.c includes these with .incbin
$(BUILD)/src/board/page.o: $(wildcard src/board/page/*)

# unit tests: one program per file; those in cli and board are linked with the objects of leat or leat-board, the others
# with those of leatd
$(BUILD)/tests/unit/board/%: $(BUILD)/tests/unit/board/%.o $(BUILD)/libboard.a $(BUILD)/libleat.a
	$(LINK) -lcmocka $(LIBRARIES) $(BOARD_LIBRARIES)

$(BUILD)/tests/unit/cli/%: $(BUILD)/tests/unit/cli/%.o $(BUILD)/libcli.a $(BUILD)/libleat.a
	$(LINK) -lcmocka $(LIBRARIES)

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libdaemon.a $(BUILD)/libleat.a
	$(LINK) -lcmocka $(LIBRARIES)

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# the files of --version are compiled again if the commit changes, and no others
NAME_COMMIT = $(BUILD)/src/cli/main.o $(BUILD)/src/daemon/options.o $(BUILD)/src/board/options.o
$(NAME_COMMIT): $(BUILD)/commit
$(NAME_COMMIT): private DEFINE_COMMIT = -DLEAT_COMMIT='"$(if $(filter-out release,$(COMMIT)), (commit $(COMMIT)))"'
$(BUILD)/commit: force
	@mkdir -p $(@D)
	@echo "$(COMMIT)" >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# this file changes only if the compiler or its options change
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo "$(CC) $(subst ",\",$(ALL_CFLAGS) $(ALL_LDFLAGS))" >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The function library is one chunk of Lua: a part can use the parts before it. library.c includes it with .incbin,
# which dependency files do not record.
LIBRARY = $(patsubst %,src/queue/lua/%.lua,leat limits settings outage figures dead_letter requeue dead_retention names index \
	lanes expiry history results enqueue add lists scan claim lease finish signatures changes operators view explain doctor repair functions)
SHARED = $(patsubst %,src/queue/shared/%.h,limits task_fields)
$(BUILD)/leat.lua: $(LIBRARY) $(SHARED) Makefile
	@mkdir -p $(@D)
	{ echo '#!lua name=leat' && \
	sed -nE -e 's|^#define QUEUE_(\w+) ([0-9]+)( +/\* (.*) \*/)?$$|local \1 = \2 -- \4|p' \
		-e 's/^#define TASK_FIELDS.*/local TASK_FIELDS = {/p' -e 's/^ *FIELD\((\w+)\).*/  \1 = true,/p' $(SHARED) && \
	echo '}' && cat $(LIBRARY); } > $@
$(BUILD)/src/queue/library.o: $(BUILD)/leat.lua

-include $(patsubst %.c,$(BUILD)/%.d,$(SOURCES) $(UNIT_SOURCES) $(FUZZ_SOURCES))

SUBMAKE = $(MAKE) --no-print-directory

demo: ## show leat at work with a private Redis and a worker; 10 seconds
	@$(SUBMAKE) deps-demo
	@$(SUBMAKE) -s -j$(JOBS) all
	@tests/demo/run $(BUILD)

check: ## run every test (SAN=1: those that run compiled code, under ASan and UBSan; SHORT=1: a twelfth of these)
	@$(SUBMAKE) deps-check
	@$(SUBMAKE) -j$(JOBS) all unit-tests
	@$(SUBMAKE) run-check

check-servers: ## run the tests that depend on the server on Redis and Valkey of Debian 13, too (SHORT=1)
	@$(SUBMAKE) deps-check
	@$(SUBMAKE) -j$(JOBS) all unit-tests
	@tests/tools/check-servers $(if $(SHORT),--short) $(BUILD)

check-nightly: ## test cgroup limits in a guest kernel, then run check SAN=1 and inject
	@$(SUBMAKE) deps-nightly
	@$(SUBMAKE) -j$(JOBS) all
	@tests/guest/run $(BUILD) tests/integration/isolation/test_cgroup_limits.py tests/integration/isolation/test_cgroups.py \
		tests/systemd/test_unit_memory.py
	@$(SUBMAKE) check SAN=1
	@$(SUBMAKE) inject

run-check: # check without installing packages and building
	@tests/tools/check $(if $(SAN),--compiled) $(if $(SHORT),--short) $(BUILD)

unit-tests: $(UNIT_SOURCES:%.c=$(BUILD)/%) $(BUILD)/tests/inject/inject.so $(BUILD)/tests/inject/wall.so \
	$(BUILD)/tests/next/leatd $(BUILD)/tests/far/leatd

# Programs of later versions, for upgrades. What `next` hands over has more in it than this version knows; `far` hands
# over in a form that this version does not understand. Both have a newer function library.
VERSION_SOURCES = $(wildcard src/daemon/upgrade/*.c) $(addprefix src/,daemon/upgrade.c daemon/heartbeat.c daemon/main.c \
	daemon/options.c queue/library.c)
LATER = -ULEAT_VERSION -DLEAT_COMMIT='""' -ULEAT_LIBRARY -DLEAT_LIBRARY='"$(BUILD)/tests/later.lua"' -DHAND_OVER_MORE='uint32_t more[100];'
$(BUILD)/tests/next/%.o: private LATER += -DLEAT_VERSION='"9.9.9"' -DHAND_OVER_FORM=2 -DHAND_OVER_LEAST=1
$(BUILD)/tests/far/%.o: private LATER += -DLEAT_VERSION='"99.0.0"' -DHAND_OVER_FORM=3 -DHAND_OVER_LEAST=3
$(BUILD)/tests/later.lua: $(BUILD)/leat.lua
	@mkdir -p $(@D)
	sed 's/^local VERSION = /&100/' $< >$@
define later
$(BUILD)/tests/$(1)/%.o: %.c $(BUILD)/flags $(BUILD)/tests/later.lua
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $$(LATER) -MMD -MP -c -o $$@ $$<
$(BUILD)/tests/$(1)/leatd: $(VERSION_SOURCES:%.c=$(BUILD)/tests/$(1)/%.o) $(BUILD)/libdaemon.a $(BUILD)/libleat.a
	$$(LINK) $$(LIBRARIES)
-include $(VERSION_SOURCES:%.c=$(BUILD)/tests/$(1)/%.d)
endef
$(foreach version,next far,$(eval $(call later,$(version))))

# These options are fixed: the library interposes between a program and the functions of the sanitizers, and its
# vfork must be left with a jump.
$(BUILD)/tests/inject/%.so: tests/inject/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -Wall -Wextra $(if $(WERROR),-Werror) -O2 -g -fPIC -fno-builtin -fno-stack-protector -shared -o $@ $<

# three tests for each processor, because they wait most of the time
inject: ## make each allocation and many system calls fail or kill leatd, one by one (SAN=1); about an hour and a half
	@$(SUBMAKE) deps-check
	@$(SUBMAKE) -j$(JOBS) all unit-tests
	@LEAT_INJECT=all LEAT_BUILD=$(BUILD) /usr/bin/python3 -B -m pytest -q -p no:cacheprovider \
		-n $$((3 * $(JOBS))) tests/integration/faults/test_injection.py tests/integration/faults/test_crash.py

bench: ## measure throughput and latency, relative to a bare vfork loop
	@$(SUBMAKE) deps-bench
	@$(SUBMAKE) -j$(JOBS) all
	@tests/bench/run --build $(BUILD)

bench-peers: ## install Celery, Sidekiq and BullMQ, and compare resident processes with them
	@$(SUBMAKE) deps-bench-peers
	@$(SUBMAKE) -j$(JOBS) all
	@tests/bench/run --build $(BUILD) --only residents --only peers --only imports

failover: ## kill and stop masters of Sentinel and Cluster under load (FAILOVER_TIMES=10 of each)
	@$(SUBMAKE) deps-check
	@$(SUBMAKE) -j$(JOBS) all
	@tests/failover/run --build $(BUILD) --times $(FAILOVER_TIMES)

bench-scale: ## measure the limits of one machine: tasks, daemons, lanes (tests/bench/SCALE.md)
	@$(SUBMAKE) deps-bench
	@$(SUBMAKE) -j$(JOBS) all
	@tests/bench/run --build $(BUILD) --scale

# ---- chaos: the task is linked statically, because most of the time of a run goes to starting tasks
chaos: ## inject random faults and check invariants (CHAOS_SECONDS=60 CHAOS_SEED=N CHAOS_FAULTS=all,hosts,upgrades,residents)
	@$(SUBMAKE) deps-chaos
	@$(SUBMAKE) -j$(JOBS) all $(CHAOS_PROGRAMS)
	@tests/chaos/run --build $(BUILD) --seconds $(CHAOS_SECONDS) --faults $(CHAOS_FAULTS) \
		$(if $(CHAOS_SEED),--seed $(CHAOS_SEED))

chaos-seeds: ## run four short chaos tests with fixed seeds, two at a time
	@$(SUBMAKE) deps-chaos
	@$(SUBMAKE) -j$(JOBS) all $(CHAOS_PROGRAMS)
	@tests/chaos/seeds --build $(BUILD)

chaos-mutants: ## check that chaos finds each of the bugs put into copies of leat
	@$(SUBMAKE) deps-check
	@tests/chaos/mutants

CHAOS_TASKS = $(BUILD)/tests/chaos/task $(BUILD)/tests/chaos/handler
CHAOS_PROGRAMS = $(CHAOS_TASKS) $(BUILD)/tests/next/leatd
$(CHAOS_TASKS): $(BUILD)/tests/chaos/%: tests/chaos/%.c tests/chaos/trace.c tests/chaos/trace.h
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE $(WARNINGS) -O2 -static -o $@ $(filter %.c,$^) -ljansson

# ---- fuzzing: the whole library is instrumented, in its own build folder
fuzz: ## fuzz config, URLs, task decoding, signatures, replies, what is shown of them, and headers (FUZZ_SECONDS=60 each)
	@$(SUBMAKE) deps-fuzz
	@$(SUBMAKE) -j$(JOBS) BUILD=build-fuzz CC=clang SAN=1 \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' build-fuzz
	@tests/tools/fuzz build-fuzz $(FUZZ_SECONDS)

.PHONY: build-fuzz
build-fuzz: $(FUZZ_SOURCES:%.c=$(BUILD)/%)
$(BUILD)/tests/fuzz/fuzz_gate: $(BUILD)/src/board/gate.o
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/libleat.a
	$(LINK) -fsanitize=fuzzer $(LIBRARIES)

model: ## check every interleaving of leases and fencing with spin (MODEL_FAULTS=1 per run)
	@$(SUBMAKE) deps-model
	@tests/model/run $(BUILD)/model $(MODEL_FAULTS)

# ---- lint: each C file has a stamp, so that only changed files are checked again
C_FILES = $(wildcard src/*/*.[ch] src/*/*/*.[ch] tests/*/*.[ch] tests/unit/*/*.[ch])
SCRIPTS = $(shell grep -lE '^\#!.*/(ba)?sh' .ci/* tests/tools/* tests/demo/* tests/bench/* \
	tests/model/* tests/guest/* tests/producers/* conf/* conf/debian/* conf/debian/tests/* conf/handlers/* \
	2>/dev/null) \
	src/cli/leat.bash
PYTHON = $(shell find tests src conf -name '*.py'; \
	grep -lE '^\#!.*python3' tests/tools/* tests/bench/* tests/chaos/* \
	tests/failover/* 2>/dev/null)

lint: ## run clang-format, clang-tidy, cppcheck, shellcheck, luacheck and flake8; check units and man pages
	@$(SUBMAKE) deps-lint
	@$(SUBMAKE) -k -j$(JOBS) BUILD=build-lint run-lint

.PHONY: lint-format lint-tidy lint-cppcheck lint-shell lint-lua lint-python lint-unit lint-manuals
run-lint: lint-format lint-tidy lint-cppcheck lint-shell lint-lua lint-python lint-unit lint-manuals
lint-format:
	@echo clang-format
	@clang-format --dry-run -Werror $(C_FILES)
# clang reads the options of the build's compiler, and has this one only in later versions
LINT_CFLAGS = $(filter-out -ftrivial-auto-var-init=zero,$(ALL_CFLAGS)) -DLEAT_COMMIT='""'
lint-tidy: $(patsubst %.c,$(BUILD)/%.tidy,$(SOURCES))
$(BUILD)/%.tidy: %.c .clang-tidy
	@mkdir -p $(@D)
	@clang -E $(LINT_CFLAGS) -MMD -MP -MT $@ -MF $(@:.tidy=.tidy.d) -o /dev/null $<
	clang-tidy --quiet $< -- $(LINT_CFLAGS) 2>$@.log || { cat $@.log; exit 1; }
	@touch $@
-include $(patsubst %.c,$(BUILD)/%.tidy.d,$(SOURCES))
# cppcheck has to be told what the macros of sys/queue.h are
QUEUE_H = $(filter %/sys/queue.h,$(shell $(CC) -M -include sys/queue.h -xc /dev/null))
lint-cppcheck:
	@mkdir -p $(BUILD)/cppcheck
	cppcheck --quiet --std=c11 --enable=warning,performance --inline-suppr \
		--suppress=missingIncludeSystem --suppress=comparePointers --suppress=invalidFunctionArg \
		--library=posix --include=$(QUEUE_H) --cppcheck-build-dir=$(BUILD)/cppcheck \
		--error-exitcode=1 -D_GNU_SOURCE -DLEAT_VERSION='""' -DLEAT_COMMIT='""' -DLEAT_SYSCONFDIR='""' -Isrc src tests
lint-shell:
	shellcheck $(SCRIPTS)
# all parts as one chunk, since they use each other
lint-lua: $(BUILD)/leat.lua
	luacheck --quiet --no-color --std lua51 --globals redis cmsgpack cjson --no-max-line-length -- $<
lint-python:
	@echo flake8
	@flake8 --max-line-length=115 $(PYTHON)
# $(1): a drop-in, or nothing; $(2): ten times the highest exposure that systemd-analyze security may report; $(3): the unit, if not leatd@
lint-exposure = \
	@rm -rf $(ROOT)/etc && mkdir -p $(ROOT)/etc/systemd/system/leatd@.service.d $(if $(1),&& \
		cp $(1) $(ROOT)/etc/systemd/system/leatd@.service.d && \
		systemd-analyze verify --man=no --recursive-errors=no --root=$(ROOT) leatd@.service) && \
	systemd-analyze security --offline=true --threshold=$(2) --no-pager --root=$(ROOT) \
		$(or $(3),leatd@.service) >$(BUILD)/security || { cat $(BUILD)/security; exit 1; }; \
	echo "exposure$(if $(1), with $(notdir $(1))):" $$(sed -n 's/.*: \([0-9.]* .*\)/\1/p' $(BUILD)/security)
# in a root of its own, because the programs of ExecStart must exist
lint-unit: ROOT = $(abspath $(BUILD))/root
lint-unit:
	@mkdir -p $(ROOT)/usr/bin $(ROOT)/bin $(ROOT)/usr/lib/systemd/system
	@for name in leatd leat leat-board stunnel4; do cp /bin/true $(ROOT)/usr/bin/$$name; done
	@cp /bin/kill $(ROOT)/bin/
	@cp systemd/*.service systemd/leat.slice conf/*.service conf/*.timer \
		$(ROOT)/usr/lib/systemd/system/
	systemd-analyze verify --man=no --recursive-errors=no --root=$(ROOT) leatd@.service leat-board.service leat.slice \
		$(notdir $(wildcard conf/*.service conf/*.timer))
	$(call lint-exposure,,30)
	$(call lint-exposure,systemd/leatd-other-user.conf,33)
	$(call lint-exposure,systemd/leatd-strict.conf,15)
	$(call lint-exposure,systemd/leatd-tls.conf,30)
	$(call lint-exposure,,15,leat-board.service)
# pages that only link to another one (.so) cannot be read from here
lint-manuals:
	mandoc -T lint -W warning $$(grep -L '^\.so ' $(MAN_PAGES))

# ---- installing
MAN_PAGES = $(wildcard src/*/*.[1-8] src/*/man/*.[1-8] conf/*.[1-8])
EXAMPLES = $(wildcard systemd/*.conf conf/*.conf conf/*.ini conf/*.acl conf/*.service conf/*.timer \
	conf/*.yml conf/*.json conf/handlers/*.c) conf/Containerfile
EXAMPLE_SCRIPTS = $(wildcard conf/*.sh) $(filter-out %.c,$(wildcard conf/handlers/*))
CLIENTS = $(addprefix src/clients/,README.md leat.py leat.js leat.d.ts)
LIVE = $(if $(DESTDIR),,$(shell test -d /run/systemd/system && test "$$(id -u)" = 0 && echo yes))

# all files but those of docdir, examplesdir and clientsdir
INSTALLED = $(addprefix $(DESTDIR),$(bindir)/leat $(sbindir)/leatd $(sbindir)/leat-board $(unitdir)/leatd@.service \
	$(unitdir)/leat-board.service $(unitdir)/leat.slice $(sysusersdir)/leat.conf $(sysusersdir)/leat-board.conf $(tmpfilesdir)/leat.conf $(catalogdir)/leat.catalog $(completionsdir)/leat \
	$(zshcompletionsdir)/_leat $(fishcompletionsdir)/leat.fish \
	$(sysconfdir)/logrotate.d/leat \
	$(foreach page,$(MAN_PAGES),$(mandir)/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page))))
# names the installation's folders in them
RELOCATE = sed -i -e 's|/usr/bin/leatd\b|$(sbindir)/leatd|g' -e 's|/usr/bin/leat-board\b|$(sbindir)/leat-board|g' -e 's|/usr/bin/leat\b|$(bindir)/leat|g' \
	-e 's|/usr/local/share/leat/examples\b|$(examplesdir)|g' \
	-e 's|/etc/leat\b|$(sysconfdir)/leat|g' -e 's|/etc/logrotate[.]d\b|$(sysconfdir)/logrotate.d|g'

install: all ## install into PREFIX=/usr/local below DESTDIR=; if systemd runs here, also create the user leat
	@$(SUBMAKE) install-files

# Units of 0.1.0 had the user leat: their queues keep it.
KEEP_USERS = if [ -e $(unitdir)/leatd@.service ] && ! grep -q 00-user.conf $(unitdir)/leatd@.service; then \
	for file in $(sysconfdir)/leat/*.ini; do \
		[ ! -e "$$file" ] || $(BUILD)/leat init --service "$$(basename "$$file" .ini)" --shared || exit 1; \
	done; fi

install-files: # install without building
	$(if $(LIVE),$(KEEP_USERS))
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(sbindir) $(DESTDIR)$(unitdir) $(DESTDIR)$(sysusersdir) \
		$(DESTDIR)$(tmpfilesdir) $(DESTDIR)$(docdir) $(DESTDIR)$(examplesdir) $(DESTDIR)$(sysconfdir)/leat
	install -m 755 $(BUILD)/leat $(DESTDIR)$(bindir)/
	install -m 755 $(BUILD)/leatd $(BUILD)/leat-board $(DESTDIR)$(sbindir)/
	install -m 644 systemd/leatd@.service systemd/leat-board.service systemd/leat.slice $(DESTDIR)$(unitdir)/
	install -m 644 systemd/leat.sysusers $(DESTDIR)$(sysusersdir)/leat.conf
	install -m 644 systemd/leat-board.sysusers $(DESTDIR)$(sysusersdir)/leat-board.conf
	install -m 644 systemd/leat.tmpfiles $(DESTDIR)$(tmpfilesdir)/leat.conf
	install -D -m 644 systemd/leat.catalog $(DESTDIR)$(catalogdir)/leat.catalog
	install -D -m 644 conf/leat.logrotate $(DESTDIR)$(sysconfdir)/logrotate.d/leat
	install -m 644 README.md LICENSE $(DESTDIR)$(docdir)/
	install -m 644 $(EXAMPLES) $(DESTDIR)$(examplesdir)/
	install -m 755 $(EXAMPLE_SCRIPTS) $(DESTDIR)$(examplesdir)/
	install -d $(DESTDIR)$(clientsdir)
	install -m 644 $(CLIENTS) $(DESTDIR)$(clientsdir)/
	install -D -m 644 src/cli/leat.bash $(DESTDIR)$(completionsdir)/leat
	install -D -m 644 src/cli/leat.zsh $(DESTDIR)$(zshcompletionsdir)/_leat
	install -D -m 644 src/cli/leat.fish $(DESTDIR)$(fishcompletionsdir)/leat.fish
	$(foreach page,$(MAN_PAGES),install -D -m 644 $(page) \
		$(DESTDIR)$(mandir)/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)) &&) true
	$(RELOCATE) $(filter-out $(addprefix $(DESTDIR),$(bindir)/% $(sbindir)/%),$(INSTALLED)) $(DESTDIR)$(docdir)/* \
		$(DESTDIR)$(examplesdir)/*
	$(if $(LIVE),systemd-sysusers $(sysusersdir)/leat.conf $(sysusersdir)/leat-board.conf)
	$(if $(LIVE),systemd-tmpfiles --create $(tmpfilesdir)/leat.conf)
	$(if $(LIVE),journalctl --update-catalog)
	$(if $(LIVE),systemctl daemon-reload)

# ---- packages of leat
dist: ## make a source tarball, its checksum and an SPDX list of its files in build/dist
	@tests/tools/dist $(VERSION) $(BUILD)/dist

dist-clients: ## make the Python wheel and the npm tarball of the clients in build/dist
	@$(SUBMAKE) deps-dist
	@tests/tools/dist-clients $(VERSION) $(BUILD)/dist

deb: ## build the Debian packages and their source package in build/deb
	@$(SUBMAKE) deps-deb
	@tests/tools/deb $(VERSION) $(BUILD)/deb

repro: ## build all packages twice under different conditions, and compare them
	@$(SUBMAKE) deps-repro
	@tests/tools/repro $(VERSION) $(BUILD)/repro

uninstall: ## remove the installed files; if systemd runs here, stop the workers first; keep /etc/leat if it has files
	$(if $(LIVE),systemctl stop leat-board.service 'leatd@*.service' leat.slice)
	rm -f $(INSTALLED)
	rm -rf $(DESTDIR)$(docdir) $(DESTDIR)$(examplesdir) $(DESTDIR)$(clientsdir)
	rmdir $(dir $(DESTDIR)$(examplesdir)) $(DESTDIR)$(sysconfdir)/leat 2>/dev/null || true
	$(if $(LIVE),journalctl --update-catalog)
	$(if $(LIVE),systemctl daemon-reload)

# ---- packages
deps: ## install the Debian packages for all targets except check-nightly
	@tests/tools/install-packages $(sort $(BUILD_PACKAGES) $(REPRO_PACKAGES) $(CHECK_PACKAGES) $(LINT_PACKAGES) \
		$(FUZZ_PACKAGES) $(BENCH_PACKAGES) $(MODEL_PACKAGES) $(CHAOS_PACKAGES))
deps-build:
	@tests/tools/install-packages $(BUILD_PACKAGES)
deps-deb:
	@tests/tools/install-packages $(DEB_PACKAGES)
deps-repro:
	@tests/tools/install-packages $(REPRO_PACKAGES)
deps-dist:
	@tests/tools/install-packages python3
deps-demo:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(DEMO_PACKAGES)
deps-check:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(CHECK_PACKAGES)
deps-chaos:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(CHECK_PACKAGES) $(CHAOS_PACKAGES)
deps-nightly:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(CHECK_PACKAGES) $(NIGHTLY_PACKAGES)
deps-lint:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(LINT_PACKAGES) libcmocka-dev
deps-fuzz:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(FUZZ_PACKAGES)
deps-model:
	@tests/tools/install-packages $(MODEL_PACKAGES)
deps-bench:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(BENCH_PACKAGES)

# Debian's npm conflicts with a Node.js from elsewhere, which has its own.
deps-bench-peers:
	@tests/tools/install-packages $(BUILD_PACKAGES) $(BENCH_PACKAGES) $(PEER_PACKAGES)
	@command -v npm >/dev/null || tests/tools/install-packages nodejs npm
	@[ -d $(BUILD)/peers/node_modules/bullmq ] || { echo "Installing BullMQ with npm"; \
		npm install --no-audit --no-fund --loglevel error --prefix $(BUILD)/peers bullmq@5 ioredis@5; }

print-version:
	@echo $(VERSION)

clean: ## remove all build folders
	rm -rf build build-*

help: ## show this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null || \
		sed -nE 's/^([a-z-]+):[^#]*## (.*)/make \1: \2/p' Makefile
