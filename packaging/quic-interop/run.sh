#!/bin/sh
# Entry point of a simulator container of quic-interop-runner. It reads SCENARIO and WAITFORSERVER, carries
# what eth0 (the client) and eth1 (the server) send each other, and writes captures of both.
#
# LOGS is the folder of the captures, by default /logs.
set -eu

readonly LOGS=${LOGS:-/logs}
children=

# Ends what runs beside this script, and waits for it.
finish() {
    trap - INT TERM
    for child in $children; do
        kill -TERM "$child" 2>/dev/null || true
    done
    wait
}
trap 'finish; exit 143' INT TERM

# The kernel forwards nothing: all packets take the emulated link.
nft -f - <<'RULES'
table inet longwire-quic-interop {
    chain forward {
        type filter hook forward priority filter; policy drop;
    }
}
RULES

# A server that does not answer in time is an error, as in the other simulator.
if [ -n "${WAITFORSERVER:-}" ]; then
    longwire quic-interop wait "$WAITFORSERVER" --for 10s
fi

# Longwire's ports have no addresses of the kernel. The simulator's own ones move to the loopback: the kernel
# still answers ARP for them, and the connections by which clients wait for the simulator.
move_addresses() {
    interface=$1 address=$2 network=$3
    ip addr flush dev "$interface" scope global
    ip addr add "$address/32" dev lo
    ip route add "$network" dev "$interface" src "$address"
}
ip link set lo up
move_addresses eth0 193.167.0.2 193.167.0.0/24
move_addresses eth1 193.167.100.2 193.167.100.0/24

# Starts a capture, and waits until its file is there: the interface is open by then.
capture() {
    rm -f "$2"
    tcpdump -Z root -i "$1" -s 0 -U --immediate-mode -w "$2" &
    children="$children $!"
    while [ ! -e "$2" ] && kill -0 "$!" 2>/dev/null; do
        sleep 0.05
    done
}

echo "Using scenario: $SCENARIO"
capture eth0 "$LOGS/trace_node_left.pcap"
capture eth1 "$LOGS/trace_node_right.pcap"
longwire quic-interop run --left eth0 --right eth1 "$SCENARIO" &
readonly EMULATOR=$!
children="$children $EMULATOR"

status=0
wait "$EMULATOR" || status=$?
finish
exit "$status"
