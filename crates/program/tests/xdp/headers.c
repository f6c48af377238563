// Finds the transport header behind VLAN tags, IPv4 with options or IPv6 with extension headers, and counts by port.
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} by_port SEC(".maps");

__u64 by_length[16];

static __always_inline int tags(void **at, void *end, __be16 *proto)
{
	struct vlan *tag;
	int i;

#pragma unroll
	for (i = 0; i < 2; i++) {
		if (*proto != bpf_htons(ETH_P_8021Q) && *proto != bpf_htons(ETH_P_8021AD))
			break;
		tag = *at;
		if ((void *)(tag + 1) > end)
			return -1;
		*proto = tag->proto;
		*at = tag + 1;
	}
	return 0;
}

static __always_inline int extensions(void **at, void *end, __u8 *proto)
{
	struct ipv6_opt_hdr *option;
	int i;

#pragma unroll
	for (i = 0; i < 4; i++) {
		if (*proto != IPPROTO_HOPOPTS && *proto != IPPROTO_ROUTING && *proto != IPPROTO_DSTOPTS)
			return 0;
		option = *at;
		if ((void *)(option + 1) > end)
			return -1;
		*proto = option->nexthdr;
		*at += (option->hdrlen + 1) * 8;
	}
	return -1;
}

SEC("xdp")
int headers(struct xdp_md *ctx)
{
	void *at = DATA(ctx), *end = END(ctx);
	struct ethhdr *eth = at;
	__be16 kind;
	__u8 proto;
	__u32 key;
	__u64 *count;

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	kind = eth->h_proto;
	at = eth + 1;
	if (tags(&at, end, &kind) < 0)
		return XDP_DROP;
	if (kind == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = at;
		int length;

		if ((void *)(ip + 1) > end)
			return XDP_DROP;
		length = ip->ihl * 4;
		if (length < (int)sizeof(*ip))
			return XDP_DROP;
		proto = ip->protocol;
		at += length;
	} else if (kind == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = at;

		if ((void *)(ip + 1) > end)
			return XDP_DROP;
		proto = ip->nexthdr;
		at = ip + 1;
		if (extensions(&at, end, &proto) < 0)
			return XDP_DROP;
	} else {
		return XDP_PASS;
	}
	by_length[((end - DATA(ctx)) >> 7) & 15]++;
	if (proto == IPPROTO_TCP) {
		struct tcphdr *tcp = at;

		if ((void *)(tcp + 1) > end)
			return XDP_DROP;
		key = bpf_ntohs(tcp->dest) & 63;
	} else if (proto == IPPROTO_UDP) {
		struct udphdr *udp = at;

		if (end < (void *)(udp + 1))
			return XDP_DROP;
		key = bpf_ntohs(udp->dest) % 64;
	} else {
		return XDP_PASS;
	}
	count = bpf_map_lookup_elem(&by_port, &key);
	if (count)
		*count += 1;
	return XDP_PASS;
}
