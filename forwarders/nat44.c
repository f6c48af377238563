// SPDX-License-Identifier: Apache-2.0 OR MIT
// NAT44: translates addresses and ports of IPv4 by bindings that its control half makes (RFC 3022; RFC 5508 for ICMP queries).
//
// Key: general (ALL), on the ports of both sides. TCP, UDP, and ICMP echo, whose identifier is as a port. A packet's source is translated
// if it has a binding, and so is its destination, which makes hairpinning work (RFC 4787, section 6).
//
// State, 4 bytes, zero at first.
//	 0	u32	mark of packets that have no binding or can't be translated here, for the control half: fragments, options,
//			ICMP errors. 0: they get none
//
// Map bindings, written by the control half, two entries a binding:
//	key	4 bytes address, 2 bytes port, as in headers; u8 protocol; u8 side, 0: of the source, 1: of the destination
//	value	4 bytes new address, 2 bytes new port, 2 bytes 0; u64 packets, u64 time of the last in nanoseconds (written here)
//
// Returns XDP_PASS: with nothing changed if there is no binding.
//
// Not one of the paper's.
#include "forwarder.h"

enum { ECHO_REPLY = 0, ECHO_REQUEST = 8 };

struct endpoint {
	__be32 address;
	__be16 port;
	__u8 protocol;
	__u8 side;
};

struct binding {
	__be32 address;
	__be16 port;
	__u16 spare;
	__u64 packets;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct endpoint);
	__type(value, struct binding);
} bindings SEC(".maps");

struct icmp {
	__u8 type, code;
	__be16 check, identifier, sequence;
};

/* What is added to checksums. */
struct change {
	__u64 addresses;
	__u64 ports;
};

/* Writes what the binding of an endpoint says. Gives 0 if it has none. */
static __always_inline int translate(__be32 *address, __be16 *port, __u8 protocol, __u8 side, struct change *change)
{
	struct endpoint key = { .address = *address, .port = *port, .protocol = protocol, .side = side };
	struct binding *binding = bpf_map_lookup_elem(&bindings, &key);

	if (!binding)
		return 0;
	change->addresses += (__u64)binding->address - *address;
	change->ports += (__u64)binding->port - *port;
	*address = binding->address;
	*port = binding->port;
	__sync_fetch_and_add(&binding->packets, 1);
	binding->last = bpf_ktime_get_ns();
	return 1;
}

static __always_inline int without_binding(void)
{
	__u32 *mark = lw_flow_state(sizeof(*mark));

	if (*mark)
		lw_mark(*mark);
	return XDP_PASS;
}

SEC("xdp")
int nat44(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct udp *udp = (void *)(ip + 1);
	struct tcp *tcp = (void *)(ip + 1);
	struct icmp *icmp = (void *)(ip + 1);
	__be16 *source_port, *destination_port;
	struct change change = {};
	int bound = 0;

	if ((void *)(udp + 1) > end || ETHERTYPE(data) != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	if (*(__u8 *)ip != IPV4_PLAIN || ip->frag_off & bpf_htons(IPV4_OFFSET | IPV4_MORE))
		return without_binding();
	if (ip->protocol == IPPROTO_ICMP) {
		if (icmp->type != ECHO_REQUEST && icmp->type != ECHO_REPLY)
			return without_binding();
		source_port = destination_port = &icmp->identifier;
	} else if (ip->protocol == IPPROTO_UDP || (ip->protocol == IPPROTO_TCP && (void *)(tcp + 1) <= end)) {
		source_port = &udp->source;
		destination_port = &udp->destination;
	} else {
		return without_binding();
	}

	// A query has one identifier: its sender's when it is asked, its receiver's when it is answered.
	if (ip->protocol != IPPROTO_ICMP || icmp->type == ECHO_REQUEST)
		bound += translate(&ip->saddr, source_port, ip->protocol, SOURCE, &change);
	if (ip->protocol != IPPROTO_ICMP || icmp->type == ECHO_REPLY)
		bound += translate(&ip->daddr, destination_port, ip->protocol, DESTINATION, &change);
	if (!bound)
		return without_binding();

	ip->check = adjusted(ip->check, change.addresses);
	if (ip->protocol == IPPROTO_ICMP) {
		icmp->check = adjusted(icmp->check, change.ports);
	} else if (ip->protocol == IPPROTO_UDP) {
		// 0 is no checksum; one that is 0 is written as its other zero (RFC 768).
		__be16 check = adjusted(udp->check, change.addresses + change.ports);

		if (udp->check)
			udp->check = check ? check : 0xffff;
	} else if ((void *)(tcp + 1) <= end) {
		tcp->check = adjusted(tcp->check, change.addresses + change.ports);
	}
	return XDP_PASS;
}
