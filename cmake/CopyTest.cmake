# `cmake -DFROM=... -DTO=... -P` copies a test program into a bundle, where it finds libraries beside the program's.
file(COPY_FILE ${FROM} ${TO})
file(RPATH_SET FILE ${TO} NEW_RPATH "\$ORIGIN/../python/headshare/lib")
