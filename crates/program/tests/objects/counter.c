// Counts packets by protocol in an array and by source address in a hash map; drops what is too short.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} protocols SEC(".maps");

struct sums {
	__u64 packets;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct sums));
	__uint(map_flags, BPF_F_NO_PREALLOC);
} sources SEC(".maps");

SEC("xdp")
int count(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct sums first = { .packets = 1 }, *sums;
	__u32 key;
	__u64 *value;

	if ((void *)(ip + 1) > data_end)
		return XDP_DROP;
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	key = ip->protocol;
	value = bpf_map_lookup_elem(&protocols, &key);
	if (value)
		__sync_fetch_and_add(value, 1);
	key = ip->saddr;
	sums = bpf_map_lookup_elem(&sources, &key);
	if (sums) {
		sums->packets += 1;
		sums->bytes += data_end - data;
	} else {
		first.bytes = data_end - data;
		bpf_map_update_elem(&sources, &key, &first, BPF_NOEXIST);
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
