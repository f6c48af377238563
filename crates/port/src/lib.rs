//! Drivers: AF_XDP, AF_PACKET, TAP, pcap, memory.
