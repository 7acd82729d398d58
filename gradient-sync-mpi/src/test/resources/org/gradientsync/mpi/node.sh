#!/bin/sh
# What mpirun takes for ssh: node.sh HOST COMMAND... runs a command on a node that has the name, the processes and the
# shared memory of a machine of its own, but is this machine. When the command ends, all that it started does.
host=$1
shift
exec unshare --uts --ipc --mount --pid --fork --mount-proc --kill-child \
  sh -c "hostname '$host' && mount -t tmpfs -o mode=1777 none /dev/shm && exec $*"
