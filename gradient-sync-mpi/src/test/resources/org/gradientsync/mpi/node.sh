#!/bin/sh
# What mpirun takes for ssh: node.sh HOST COMMAND... runs a command on a node that has the name, the processes and the
# shared memory of a machine of its own, but is this machine. As with ssh, it gets the caller's
# HOME and PATH, and none of the other variables. When it ends, all that it started does.
host=$1
shift
exec env -i HOME="$HOME" PATH="$PATH" \
  unshare --map-root-user --uts --ipc --mount --pid --fork --mount-proc --kill-child \
  sh -c "hostname '$host' && mount -t tmpfs -o mode=1777 none /dev/shm || exit 1; $*"
