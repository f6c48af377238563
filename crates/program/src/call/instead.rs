//! Replacements for helpers of the kernel that are missing here.

use super::kernel_name;

/// The replacement for the kernel's helper with this number, which [`Helper`](super::Helper) lacks, as the
/// end of a sentence.
pub fn instead(number: u32) -> &'static str {
    let Some(name) = kernel_name(number).filter(|_| number != 0) else {
        return "the kernel's have numbers from 1 to 211, those of longwire.h from 65536 on";
    };
    let found = INSTEAD.iter().find(|(names, _)| names.contains(&name));
    found.map_or("nothing does the same, leave the call out", |(_, fix)| fix)
}

/// By the kernel's names.
const INSTEAD: &[(&[&str], &str)] = &[
    (&["skb_load_bytes", "skb_load_bytes_relative"], "use xdp_load_bytes"),
    (&["skb_store_bytes"], "use xdp_store_bytes"),
    (
        &["probe_read", "probe_read_kernel", "probe_read_user"],
        "load from the address itself, it is checked before",
    ),
    (
        &["l3_csum_replace", "l4_csum_replace", "csum_update", "csum_level"],
        "use csum_diff, and write the sum itself",
    ),
    (&["skb_adjust_room", "skb_change_head", "xdp_adjust_meta"], "use xdp_adjust_head"),
    (&["skb_change_tail"], "use xdp_adjust_tail"),
    (&["skb_pull_data"], "leave it out, the whole packet is there: compare with data_end"),
    (&["get_hash_recalc"], "use lw_hash"),
    (&["clone_redirect", "redirect_neigh", "redirect_peer"], "use redirect, or redirect_map"),
    (&["ktime_get_tai_ns"], "use ktime_get_ns"),
    (&["for_each_map_elem"], "use loop, over numbers or keys that are known"),
    (
        &["map_lookup_percpu_elem", "per_cpu_ptr", "this_cpu_ptr"],
        "use map_lookup_elem, which finds the value of the program's own worker",
    ),
    (&["xdp_output", "skb_output"], "use perf_event_output"),
    (
        &["ringbuf_reserve_dynptr", "ringbuf_submit_dynptr", "ringbuf_discard_dynptr"],
        "use ringbuf_reserve, with a size that is constant, or ringbuf_output",
    ),
    (&["check_mtu"], "use xdp_get_buff_len; the router tells senders of what is too long"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Helper;

    #[test]
    fn what_is_named_is_there_and_what_it_replaces_is_not() {
        let is_helper = |name: &str| Helper::ALL.iter().any(|helper| helper.name() == name);
        let numbers = || (1..).map_while(|number| Some((number, kernel_name(number)?)));
        for (names, fix) in INSTEAD {
            for name in *names {
                let number = numbers().find(|(_, other)| other == name).map(|(number, _)| number);
                assert!(!is_helper(name) && number.map(instead) == Some(*fix), "{name}");
            }
            let named = fix.strip_prefix("use ").and_then(|rest| rest.split([' ', ',', ';']).next());
            assert!(named.is_none_or(is_helper), "{fix}");
        }
    }

    #[test]
    fn numbers_that_are_nobodys_say_which_there_are() {
        for number in [0, 212, 9999, 0x1_0009] {
            assert!(instead(number).contains("numbers from 1 to 211"), "{number}");
        }
        assert_eq!(instead(165), "nothing does the same, leave the call out");
    }
}
