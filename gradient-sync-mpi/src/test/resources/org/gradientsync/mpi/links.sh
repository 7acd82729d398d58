#!/bin/sh
# Runs a command on the first of several nodes of this one machine, joined by a switch through shaped links, as root:
# links.sh FOLDER NODES RATE SLOW COMMAND... RATE is tc's; node SLOW has a tenth of it (0: none).
# A node has a host name, processes, shared memory and a network of its own. All of them end with the command. FOLDER gets
# hosts (for mpirun), agent (its ssh), cut and join: cut K stops the traffic of node K, join K lets it through again.
# links.sh probe succeeds where that can be done, and otherwise says why not.
PATH=$PATH:/usr/sbin
if [ "$1" = probe ]; then
  [ "$(id -u)" = 0 ] || { echo "shaped links need root"; exit 1; }
  for program in ip tc unshare; do
    command -v "$program" >/dev/null || { echo "there is no $program"; exit 1; }
  done
  exec unshare --mount --pid --net --fork --mount-proc --kill-child sh -c 'ip link add veth0 type veth peer name veth1 &&
    ip link add br0 type bridge && ip link set veth0 up && tc qdisc add dev veth0 root tbf rate 1mbit burst 64kb latency 50ms'
fi
if [ "$1" != inside ]; then
  exec unshare --mount --pid --net --fork --mount-proc --kill-child sh "$0" inside "$@"
fi

folder=$2
nodes=$3
rate=$4
slow=$5
shift 5
set -e
mkdir -p /run/netns
mount -t tmpfs none /run/netns
touch /run/netns/switch
mount --bind /proc/self/ns/net /run/netns/switch
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
echo '127.0.0.1 localhost' >"$folder/names"
: >"$folder/hosts"
for k in $(seq "$nodes"); do
  ip netns add "node$k"
  ip link add "p$k" type veth peer name eth0 netns "node$k"
  ip link set "p$k" master br0 up
  ip -n "node$k" address add "10.77.0.$k/24" dev eth0
  ip -n "node$k" link set eth0 up
  ip -n "node$k" link set lo up
  own=$rate
  [ "$k" != "$slow" ] || own=$((${rate%%[a-z]*} / 10))${rate##*[0-9]}
  ip netns exec "node$k" tc qdisc add dev eth0 root tbf rate "$own" burst 128kb latency 50ms
  tc qdisc add dev "p$k" root tbf rate "$own" burst 128kb latency 50ms
  echo "10.77.0.$k node$k" >>"$folder/names"
  echo "node$k slots=2" >>"$folder/hosts"
done
mount --bind "$folder/names" /etc/hosts

cat >"$folder/agent" <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec "\$host" env -i HOME="\$HOME" PATH="\$PATH" \\
  unshare --uts --ipc --mount --pid --fork --mount-proc --kill-child \\
  sh -c "hostname '\$host' && mount -t tmpfs -o mode=1777 none /dev/shm || exit 1; \$*"
END
printf '#!/bin/sh\nexec ip -n switch link set "p$1" down\n' >"$folder/cut"
printf '#!/bin/sh\nexec ip -n switch link set "p$1" up\n' >"$folder/join"
chmod +x "$folder/agent" "$folder/cut" "$folder/join"
exec ip netns exec node1 unshare --uts --ipc --mount --pid --fork --mount-proc --kill-child \
  sh -c 'hostname node1 && mount -t tmpfs -o mode=1777 none /dev/shm || exit 1; exec "$@"' sh "$@"
