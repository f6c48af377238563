// Drops packets to five ranges of ports, and by a table of payload bytes at offsets that are configured.
#include "parse.h"

struct range {
	__u16 low, high;
};

struct pattern {
	__u16 offset;
	__u8 length;
	__u8 bytes[13];
};

struct range ranges[5] = { { 1, 5 } };
const volatile struct pattern patterns[3] = { { 60, 2, { 1, 2 } } };
__u32 dropped[8];

SEC("xdp")
int ports(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct udphdr *udp;
	__u16 port;
	int i;

	if ((void *)(ip + 1) > end)
		return XDP_DROP;
	udp = (void *)ip + ip->ihl * 4;
	if ((void *)(udp + 1) > end)
		return XDP_DROP;
	port = bpf_ntohs(udp->dest);
#pragma unroll
	for (i = 0; i < 5; i++) {
		if (port >= ranges[i].low && port <= ranges[i].high) {
			dropped[i]++;
			return XDP_DROP;
		}
	}
	return XDP_PASS;
}

SEC("xdp")
int payload(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	int i, k;

#pragma unroll
	for (i = 0; i < 3; i++) {
		__u8 *at = data + (patterns[i].offset & 0x3ff);
		__u32 length = patterns[i].length, same = 0;

		if ((void *)at + 13 > end)
			continue;
#pragma unroll
		for (k = 0; k < 13; k++)
			if (k < length && at[k] == patterns[i].bytes[k])
				same++;
		if (length && same == length) {
			dropped[5 + i]++;
			return XDP_DROP;
		}
	}
	return XDP_PASS;
}

SEC("xdp")
int dscp(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	__u8 buffer[16] = {}, table[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct iphdr *ip = data + sizeof(struct ethhdr);
	__u32 index;

	if ((void *)(ip + 1) > end)
		return XDP_DROP;
	index = ip->tos >> 5;
	buffer[index + 8] = table[index];
	if (index > 4)
		buffer[index] = ip->ttl;
	return buffer[ip->ttl & 15] & 1 ? XDP_PASS : XDP_TX;
}
