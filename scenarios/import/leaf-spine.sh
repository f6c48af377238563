#!/bin/sh
# What spine sends to leaf2 is slow, and lossy.
containerlab tools netem set -n clab-leaf-spine-spine -i eth2 --delay 40ms --jitter 5ms --loss 0.5
sudo containerlab tools netem set --node client2 --interface eth1 --rate 20000
