// SPDX-License-Identifier: Apache-2.0 OR MIT
// Rebind: an address translator that forgets its bindings at set times, and gives a client other ports and addresses.
//
// Key: general (ALL). One at each end of a path, so that all packets are translated behind it: at the server's end the source of what the
// client sent, at the client's end the destination of what the server sent to where the client seems to be. IPv4 and UDP without options that
// are no fragments; all else passes unchanged.
//
// Nothing is drawn, so that both ends agree: between two times of rebinding all ports are moved by the same number, and addresses too.
//
// State, 32 bytes:
//	 0	u64	time of the first rebinding, in nanoseconds
//	 8	u64	time from each to the next; 0: there is one only
//	16	4 bytes	the client's address, as in headers
//	20	u32	how many addresses behind the client's it can get: 0, or 2 to 65535
//	24	u32	0: at the server's end; 1: at the client's
//	28	u32	0
//
// Map used: which of the client's ports have sent something (written here, at the client's end).
//
// Returns XDP_PASS, or XDP_DROP with reason 0 for what goes to a binding that is no more, or never was.
//
// Not one of the paper's.
#include "forwarder.h"

/* Ports from 1 on. */
enum { PORTS = 65535 };
/* How far each rebinding moves ports, and addresses. The first has no divisor in common with PORTS: no port comes again before all others. */
enum { PORT_STEP = 40507, ADDRESS_STEP = 83 };

struct state {
	__u64 first;
	__u64 again;
	__be32 client;
	__u32 addresses;
	__u32 at_client;
	__u32 zero;
};

LW_STATE(struct state);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS + 1);
	__type(key, __u32);
	__type(value, __u8);
} used SEC(".maps");

/* How many rebindings there have been. */
static __always_inline __u64 rebindings(struct state *state, __u64 now)
{
	if (now < state->first)
		return 0;
	return 1 + (state->again ? (now - state->first) / state->again : 0);
}

/* By how much the client's address differs from its own. */
static __always_inline __u32 distance(struct state *state, __u64 count)
{
	if (!count || !state->addresses)
		return 0;
	return 1 + (count - 1) * ADDRESS_STEP % state->addresses;
}

/* Writes an address and a port, and the checksums of both headers. */
static __always_inline void write(struct iphdr *ip, struct udp *udp, __be32 *address, __be32 new_address, __be16 *port, __be16 new_port)
{
	__u64 addresses = (__u64)new_address - *address, ports = (__u64)new_port - *port;
	__be16 check = adjusted(udp->check, addresses + ports);

	*address = new_address;
	*port = new_port;
	ip->check = adjusted(ip->check, addresses);
	// 0 is no checksum; one that is 0 is written as its other zero (RFC 768).
	if (udp->check)
		udp->check = check ? check : 0xffff;
}

SEC("xdp")
int rebind(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct udp *udp = (void *)(ip + 1);
	__u32 own, port, place, protocol, from;
	__u64 count, shift;
	__u8 *is_used;

	if (whole(ctx, data, end, &protocol) != ETH_HLEN + sizeof(*ip) || protocol != IPPROTO_UDP || (void *)(udp + 1) > end)
		return XDP_PASS;
	own = bpf_ntohl(state->client);
	count = rebindings(state, bpf_ktime_get_ns());
	shift = count * PORT_STEP % PORTS;
	if (ip->saddr == state->client) {
		port = bpf_ntohs(udp->source);
		if (state->at_client) {
			is_used = bpf_map_lookup_elem(&used, &port);
			if (is_used)
				*is_used = 1;
			return XDP_PASS;
		}
		port = (port + PORTS - 1 + shift) % PORTS + 1;
		write(ip, udp, &ip->saddr, bpf_htonl(own + distance(state, count)), &udp->source, bpf_htons(port));
		return XDP_PASS;
	}
	from = bpf_ntohl(ip->daddr) - own;
	if (!state->at_client || from > state->addresses)
		return XDP_PASS;
	place = (bpf_ntohs(udp->destination) + 2 * PORTS - 1 - shift) % PORTS + 1;
	is_used = bpf_map_lookup_elem(&used, &place);
	if (from != distance(state, count) || !is_used || !*is_used)
		return lw_drop(0);
	write(ip, udp, &ip->daddr, state->client, &udp->destination, bpf_htons(place));
	return XDP_PASS;
}
