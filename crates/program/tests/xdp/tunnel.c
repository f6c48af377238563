// Puts packets into an IPv4 tunnel, and takes those of the tunnel out of it.
#include "parse.h"

struct tunnel {
	__be32 from;
	__be32 to;
	__u8 mac[6];
	__u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __be32);
	__type(value, struct tunnel);
} tunnels SEC(".maps");

SEC("xdp")
int into(struct xdp_md *ctx)
{
	struct ethhdr *eth = DATA(ctx), old;
	struct iphdr *ip = (void *)(eth + 1);
	struct tunnel *tunnel;
	__u64 sum = 0;
	__u16 *word, length;
	int i;

	if ((void *)(ip + 1) > END(ctx))
		return XDP_DROP;
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	tunnel = bpf_map_lookup_elem(&tunnels, &ip->daddr);
	if (!tunnel)
		return XDP_PASS;
	length = bpf_ntohs(ip->tot_len);
	old = *eth;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*ip)))
		return XDP_DROP;
	eth = DATA(ctx);
	ip = (void *)(eth + 1);
	if ((void *)(ip + 1) > END(ctx))
		return XDP_DROP;
	*eth = old;
	__builtin_memcpy(eth->h_dest, tunnel->mac, sizeof(eth->h_dest));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = 0;
	ip->tot_len = bpf_htons(length + sizeof(*ip));
	ip->id = 0;
	ip->frag_off = 0;
	ip->ttl = 64;
	ip->protocol = IPPROTO_IPIP;
	ip->check = 0;
	ip->saddr = tunnel->from;
	ip->daddr = tunnel->to;
	word = (void *)ip;
#pragma unroll
	for (i = 0; i < 10; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = ~((sum & 0xffff) + (sum >> 16));
	return XDP_TX;
}

SEC("xdp")
int out(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct ethhdr *eth = data, *moved;
	struct iphdr *ip = data + sizeof(*eth);

	if (data + sizeof(*eth) + 2 * sizeof(*ip) > end)
		return XDP_PASS;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_IPIP || ip->ihl != 5)
		return XDP_PASS;
	moved = (void *)eth + sizeof(*ip);
	__builtin_memmove(moved, eth, sizeof(*eth));
	if (bpf_xdp_adjust_head(ctx, sizeof(*ip)) < 0)
		return XDP_ABORTED;
	return XDP_PASS;
}
