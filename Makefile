# make demo: the quickest look. make test: every test. Both install what is missing first.
.PHONY: build demo test quick bench bundle check tidy tsan fuzz clean help

build:  ## the program, at build/headshare
	@tools/setup && tools/build headshare

demo:   ## compares attention schemes on English text that is on this machine
	@tools/setup && tools/build headshare && tools/demo

test:   ## builds everything, runs the C++ and the Python tests
	@tools/setup tests && tools/build && tools/test

quick:  ## the same without the slow tests: about three minutes once built
	@tools/setup tests && tools/build && tools/test -m "not slow"

bench:  ## measures headshare against its peers; results in docs/results and the README
	@tools/setup tests && tools/build && tools/bench

bundle: ## an archive for a bare node with a GPU: make bundle TORCH=2.11
	@tools/setup && tools/bundle $(TORCH)

check:  ## format, layers, sizes, docs: what .ci/run checks after the tests
	@tools/setup check && tools/check

tidy:   ## clang-tidy's naming rules (slow)
	@tools/setup check && tools/build && tools/check tidy

tsan:   ## the kernels' tests under ThreadSanitizer
	@tools/setup && cmake --preset tsan && cmake --build --preset tsan --target kernels_test && build/tsan/obj/kernels/kernels_test

fuzz:   ## feeds mutated files to every reader, under sanitizers: make fuzz MINUTES=30
	@tools/setup && tools/fuzz $(MINUTES)

clean:  ## removes build/
	@rm -rf build

help:   ## this list
	@sed -n 's/^\([a-z]*\):  *## /make \1\t/p' Makefile | expand -t 14
