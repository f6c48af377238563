// Walks the options of TCP headers and clamps the maximum segment size of SYNs, with the checksum made to fit.
#include "parse.h"

struct settings {
	__u16 most;
	__u16 lowered;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

SEC("xdp")
int clamp(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct settings *set;
	struct tcphdr *tcp;
	__u32 key = 0;
	__u8 *option;
	void *options_end;
	int i;

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_TCP)
		return XDP_PASS;
	if (ip->ihl < 5)
		return XDP_DROP;
	tcp = (void *)ip + ip->ihl * 4;
	if ((void *)(tcp + 1) > end)
		return XDP_DROP;
	if (!tcp->syn)
		return XDP_PASS;
	set = bpf_map_lookup_elem(&settings, &key);
	if (!set)
		return XDP_ABORTED;
	option = (void *)(tcp + 1);
	options_end = (void *)tcp + tcp->doff * 4;
#pragma unroll
	for (i = 0; i < 10; i++) {
		__u16 *mss;

		if ((void *)option + 4 > options_end || (void *)option + 4 > end)
			return XDP_PASS;
		if (option[0] == 0)
			return XDP_PASS;
		if (option[0] == 1) {
			option++;
			continue;
		}
		if (option[0] == 2 && option[1] == 4) {
			mss = (void *)(option + 2);
			if (bpf_ntohs(*mss) > set->most) {
				__u16 old = *mss;

				*mss = bpf_htons(set->most);
				tcp->check = ~fold((__u16)~tcp->check + (__u16)~old + *mss);
				set->lowered++;
			}
			return XDP_PASS;
		}
		if (option[1] < 2)
			return XDP_DROP;
		option += option[1];
	}
	return XDP_PASS;
}
