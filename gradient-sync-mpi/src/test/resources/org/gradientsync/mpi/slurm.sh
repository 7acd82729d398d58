#!/bin/sh
# Runs a command below a Slurm of this one machine, as root: slurm.sh FOLDER COMMAND...
# Its daemons have mounts, processes, ports and a host name of their own, keep all they have in FOLDER, and end with the
# command. slurm.sh probe succeeds where that can be done, and otherwise says why not.
if [ "$1" = probe ]; then
  [ "$(id -u)" = 0 ] || { echo "Slurm's daemons need root"; exit 1; }
  PATH=$PATH:/usr/sbin
  for program in slurmctld slurmd munged srun sbatch ip unshare; do
    command -v "$program" >/dev/null || { echo "there is no $program"; exit 1; }
  done
  exec unshare --uts --mount --pid --net --fork --mount-proc --kill-child ip link set lo up
fi
if [ "$1" != inside ]; then
  exec unshare --uts --mount --pid --net --fork --mount-proc --kill-child sh "$0" inside "$@"
fi

folder=$2
shift 2
PATH=$PATH:/usr/sbin
hostname node1
ip link set lo up
ip address add 192.0.2.1/32 dev lo # with loopback addresses alone, Slurm cannot resolve even 127.0.0.1
mkdir -p "$folder/state" "$folder/spool"
cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=node1(127.0.0.1)
NodeName=node1 NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=node1 Default=YES
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
END
export SLURM_CONF="$folder/slurm.conf"
export OMPI_MCA_oob_tcp_if_include=lo # mpirun does not take it by itself where it has such an address
(umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
# Forced, because folders of tests are open to others.
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
  --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" >"$folder/munged.log" 2>&1
slurmctld -D >"$folder/slurmctld.log" 2>&1 &
controller=$!
slurmd -D >"$folder/slurmd.log" 2>&1 &
daemon=$!
until sinfo --noheader --format %T 2>/dev/null | grep -q idle; do
  if ! kill -0 $controller || ! kill -0 $daemon; then
    cat "$folder"/*.log
    exit 1
  fi
  sleep 0.1
done
"$@"
exit # as the first process of its namespace, and the kernel ends all others of it
