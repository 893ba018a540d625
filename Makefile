# The few things a person types. `make help` says what each does.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MACHINE := $(shell dpkg --print-architecture 2>/dev/null || echo amd64)
PROGRAMS := heddle-nodeagent heddle-operator heddle-extender kubectl-heddle

.PHONY: help
help: ## What can be typed here
	@printf 'Heddle places GPU training where the fabric wants it.\n\n'
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: release control-plane ## A real control plane, 32 nodes of 8 H100, one training Job placed twice: see the difference
	@/usr/bin/python3 tests/cluster/demo.py --bin build/release/bin

.PHONY: test
test: install ## Everything CI runs: unit tests (plain and under sanitizers), then the real control plane
	@tools/test quick

.PHONY: check-all
check-all: install ## `test`, and what takes longer: real framework controllers, thread sanitizer, arm64, clang-tidy, soak
	@tools/test all

SEEDS ?= 1..5000
.PHONY: soak
soak: install ## Thousands of lives of a simulated cluster, SEEDS=1..5000; then ten minutes of a real control plane
	@tools/build dev sim_runner heddle-extender heddle-operator heddle-nodeagent kubectl-heddle
	@build/dev/bin/heddle_sim --seeds $(SEEDS) --jobs $(shell nproc) --go-on
	@tests/cluster/soak.py

SECONDS ?= 60
.PHONY: fuzz
fuzz: install ## Every parser under libFuzzer, SECONDS=60 each; what breaks them lies in build/fuzz/found
	@tools/build fuzz fuzzers
	@tests/fuzz/run $(SECONDS)

.PHONY: bench
bench: install ## Time the planner, the verbs and the reflector; see docs/performance.md
	@tools/build release
	@tools/bench

.PHONY: oracle
oracle: install ## Hold the planner against exact answers: 10,000 instances by OR-Tools, 3,000 by brute force
	@tools/build dev oracle_instances
	@tools/oracle

.PHONY: format
format: install ## Lay out the C++ sources by .clang-format
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

.PHONY: dev
dev: install ## Build quickly, with checks, into build/dev
	@tools/build dev

.PHONY: release
release: install-build ## Build what is shipped into build/release/bin
	@tools/build release $(PROGRAMS)

.PHONY: arm64
arm64: install-arm64 ## Cross-build the same for arm64 (Grace) into build/arm64/bin
	@tools/build arm64 $(PROGRAMS)

# The presets that an image takes its programs from: release, but for another architecture than this machine's.
ARCH := $(MACHINE)
.PHONY: images
images: $(patsubst $(MACHINE),release,$(if $(filter all,$(ARCH)),amd64 arm64,$(ARCH))) ## Container images without a container engine, into build/images/; ARCH=arm64, ARCH=all; docs/installing.md
	@tools/images --arch $(ARCH)

# Before a quarter of an hour of compiling, and not behind it.
.PHONY: as-root
as-root:
	@[[ $$(id -u) == 0 ]] || { echo 'a kubelet needs root: in a root shell (sudo -s) type make $(MAKECMDGOALS)' >&2; exit 1; }

.PHONY: e2e
e2e: as-root e2e-bed ## The images and the chart on a real kubelet: install, train, upgrade, roll back, uninstall (as root)
	@tests/e2e/run

.PHONY: shell
shell: as-root e2e-bed ## A cluster to type the quickstart into: a real kubelet with the images and no Heddle yet, and a shell on it (as root)
	@tests/e2e/run --shell

.PHONY: e2e-bed
e2e-bed: install release control-plane
	@tools/control-plane --node >/dev/null
	@tools/build dev device_plugin
	@mkdir -p build/e2e && cp build/release/bin/{heddle-{nodeagent,operator,extender},kubectl-heddle} build/dev/bin/device_plugin build/e2e/
	@tools/images --scheduler "$$(tools/control-plane --where)/kube-scheduler" >/dev/null

.PHONY: install
install: ## Install missing Debian packages: all, for tests too
	@tools/install

.PHONY: install-build
install-build: ## Install those that building, images and the demo take
	@tools/install --build

.PHONY: install-arm64
install-arm64: ## Install those that the cross build takes
	@tools/install --arm64

.PHONY: control-plane
control-plane: install-build ## Build the Kubernetes control plane (minutes once, then cached)
	@tools/control-plane >/dev/null

.PHONY: clean
clean: ## Remove build/ (the caches outside the tree stay)
	rm -rf build
