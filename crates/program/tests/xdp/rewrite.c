// Translates addresses and ports, as a NAT does, decrements the TTL, and answers pings.
#include "parse.h"
#include "../../include/longwire.h"

struct icmphdr {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__u32 rest;
};

enum { ICMP_ECHOREPLY = 0, ICMP_ECHO = 8 };

struct state {
	__be32 address;
	__be16 port;
	__u16 pad;
	__u64 packets;
	__u64 bytes;
};

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static __always_inline void swap(struct ethhdr *eth)
{
	__u8 address[ETH_ALEN];

	__builtin_memcpy(address, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, address, ETH_ALEN);
}

SEC("xdp")
int nat(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	__u16 *check = 0;
	__be16 *port;
	__be32 old;
	__u64 sum;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl != 5)
		return XDP_PASS;
	if (ip->ttl <= 1)
		return lw_drop(2);
	switch (ip->protocol) {
	case IPPROTO_TCP: {
		struct tcphdr *tcp = (void *)(ip + 1);

		if ((void *)(tcp + 1) > end)
			return XDP_DROP;
		port = &tcp->source;
		check = &tcp->check;
		break;
	}
	case IPPROTO_UDP: {
		struct udphdr *udp = (void *)(ip + 1);

		if ((void *)(udp + 1) > end)
			return XDP_DROP;
		port = &udp->source;
		check = &udp->check;
		break;
	}
	default:
		return XDP_PASS;
	}
	old = ip->saddr;
	sum = bpf_csum_diff(&old, 4, &state->address, 4, 0);
	ip->saddr = state->address;
	ip->ttl--;
	ip->check = ~fold((__u16)~ip->check + sum + 0xfffe);
	*check = ~fold((__u16)~*check + sum + (__u16)~*port + state->port);
	*port = state->port;
	state->packets++;
	__sync_fetch_and_add(&state->bytes, end - data);
	return XDP_PASS;
}

SEC("xdp")
int ping(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct icmphdr *icmp = data + sizeof(*eth) + sizeof(*ip);
	__be32 address;

	if (icmp + 1 > (struct icmphdr *)end)
		return XDP_PASS;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_ICMP || ip->ihl != 5)
		return XDP_PASS;
	if (icmp->type != ICMP_ECHO)
		return XDP_PASS;
	swap(eth);
	address = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = address;
	icmp->type = ICMP_ECHOREPLY;
	icmp->checksum = ~fold((__u16)~icmp->checksum + (__u16)~bpf_htons(ICMP_ECHO << 8));
	return XDP_TX;
}
