// SPDX-License-Identifier: Apache-2.0 OR MIT
// NAT44: translates addresses and ports of IPv4 by bindings that its control half makes (RFC 3022; RFC 5508 for ICMP queries).
//
// Key: general (ALL), on the ports of both sides. TCP, UDP, and ICMP echo, whose identifier is as a port. The source of what goes from
// an inside network to somewhere else is translated, and the destination of what goes to the external network: of a packet from inside to
// an external address both, which makes hairpinning work (RFC 4787, section 6).
//
// State, 48 bytes, zero at first: then nothing is translated.
//	 0	u32	mark of packets that the control half is to see: from inside and without a binding, and such as can't be translated
//			here: fragments, options, ICMP errors, other protocols, less than 8 bytes behind IP's header. 0: they get none
//	 4	u32	0
//	 8	4 bytes address, 4 bytes mask: the external network, as in headers; a mask of 0: there is none
//	16	four inside networks, written likewise
//
// Map bindings, written by the control half, two entries a binding:
//	key	4 bytes address, 2 bytes port, as in headers; u8 protocol; u8 side, 0: of the source, 1: of the destination
//	value	4 bytes new address, 2 bytes new port; u16 flags of TCP since the last SYN, that included: FIN (1), SYN (2), RST (4),
//		ACK (16), and SEVERAL (8), once a SYN was exchanged with another peer than the one before while nothing of that had ended, from
//		bit 5 on a hash of the last SYN's peer; u64 packets, u64 time of the last in nanoseconds (flags, packets and time are written here)
//
// Returns XDP_PASS: with nothing changed if there is no binding. What goes to an external address and has none is for the router
// itself; so is what comes from inside with a TTL of 1, so that who sent it learns of it.
//
// Not one of the paper's.
#include "forwarder.h"

enum { ECHO_REPLY = 0, ECHO_REQUEST = 8 };
enum { INSIDE = 4 };
/* Of a binding's flags: there have been several connections at once. Where the hash of the last SYN's peer begins, which has the 11 bits above. */
enum { SEVERAL = 0x08, PEER = 5 };

struct network {
	__be32 address, mask;
};

struct state {
	__u32 mark;
	__u32 zero;
	struct network external;
	struct network inside[INSIDE];
};

LW_STATE(struct state);

struct endpoint {
	__be32 address;
	__be16 port;
	__u8 protocol;
	__u8 side;
};

struct binding {
	__be32 address;
	__be16 port;
	__u16 flags;
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

static __always_inline int has(struct network *network, __be32 address)
{
	return network->mask && (address & network->mask) == network->address;
}

static __always_inline int is_inside(struct state *state, __be32 address)
{
	int inside = 0, i;

#pragma unroll
	for (i = 0; i < INSIDE; i++)
		inside |= has(&state->inside[i], address);
	return inside;
}

static __always_inline struct binding *find(__be32 address, __be16 port, __u8 protocol, __u8 side)
{
	struct endpoint key = { .address = address, .port = port, .protocol = protocol, .side = side };

	return bpf_map_lookup_elem(&bindings, &key);
}

/* The flags of a binding after a SYN that was exchanged with this peer. The one before may have been another connection, which is still there. */
static __always_inline __u16 begun(__u16 before, __u8 flags, __be32 address, __be16 port)
{
	__u16 peer = (address ^ port) * 0x9e3779b1u >> 21;

	if (before & (SYN | ACK) && !(before & (FIN | RST)) && before >> PEER != peer)
		before |= SEVERAL;
	return (before & SEVERAL) | flags | peer << PEER;
}

/* Writes what the binding of an endpoint says. The packet's other end is the peer. */
static __always_inline void translate(struct binding *binding, __be32 *address, __be16 *port, __u8 flags, __be32 peer, __be16 peer_port,
				      struct change *change)
{
	change->addresses += (__u64)binding->address - *address;
	change->ports += (__u64)binding->port - *port;
	*address = binding->address;
	*port = binding->port;
	__sync_fetch_and_add(&binding->packets, 1);
	binding->last = bpf_ktime_get_ns();
	if (flags & SYN)
		binding->flags = begun(binding->flags, flags, peer, peer_port);
	else if (flags)
		binding->flags |= flags;
}

static __always_inline int shown(struct state *state)
{
	if (state->mark)
		lw_mark(state->mark);
	return XDP_PASS;
}

SEC("xdp")
int nat44(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct udp *udp = (void *)(ip + 1);
	struct tcp *tcp = (void *)(ip + 1);
	struct icmp *icmp = (void *)(ip + 1);
	struct binding *source = 0, *destination = 0;
	__be16 *source_port, *destination_port;
	struct change change = {};
	int goes_out, to_external;
	__u8 flags = 0;

	if ((void *)(ip + 1) > end || ETHERTYPE(data) != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	goes_out = is_inside(state, ip->saddr) && !is_inside(state, ip->daddr);
	to_external = has(&state->external, ip->daddr);
	if (!goes_out && !to_external)
		return XDP_PASS;
	if (goes_out && ip->ttl <= 1)
		return XDP_PASS;
	// A last fragment may be a byte long, and what is of another protocol nothing.
	if ((void *)(udp + 1) > end || *(__u8 *)ip != IPV4_PLAIN || ip->frag_off & bpf_htons(IPV4_OFFSET | IPV4_MORE))
		return shown(state);
	if (ip->protocol == IPPROTO_ICMP) {
		if (icmp->type != ECHO_REQUEST && icmp->type != ECHO_REPLY)
			return shown(state);
		source_port = destination_port = &icmp->identifier;
	} else if (ip->protocol == IPPROTO_UDP || (ip->protocol == IPPROTO_TCP && (void *)(tcp + 1) <= end)) {
		source_port = &udp->source;
		destination_port = &udp->destination;
		if (ip->protocol == IPPROTO_TCP && (void *)(tcp + 1) <= end)
			flags = tcp->flags & (FIN | SYN | RST | ACK);
	} else {
		return shown(state);
	}

	// A query has one identifier: its sender's when it is asked, its receiver's when it is answered.
	if (to_external) {
		if (ip->protocol != IPPROTO_ICMP || icmp->type == ECHO_REPLY)
			destination = find(ip->daddr, *destination_port, ip->protocol, DESTINATION);
		if (!destination)
			return XDP_PASS;
	}
	if (goes_out) {
		if (ip->protocol != IPPROTO_ICMP || icmp->type == ECHO_REQUEST)
			source = find(ip->saddr, *source_port, ip->protocol, SOURCE);
		if (!source)
			return shown(state);
		translate(source, &ip->saddr, source_port, flags, ip->daddr, *destination_port, &change);
	}
	if (destination)
		translate(destination, &ip->daddr, destination_port, flags, ip->saddr, *source_port, &change);

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
