//! Address translation for the far end of `exec`, and a way past the machine's firewall, through the `nft` program.
//!
//! Translation lives in a table of the run's own. A packet must pass every table's chains, so rules that let the
//! uplink through are put at the head of the chains others have; they carry a comment by which they are found
//! again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Cidr, LabError};

const PURPOSE: &str = "to translate addresses behind the emulated link";

/// Sets translation up for `network` behind `uplink`, in the calling thread's namespace.
pub fn open(instance: &str, uplink: &str, network: Cidr) -> Result<(), LabError> {
    let table = table_of(instance);
    // Declared, deleted, declared: whatever a table of this name held, it now holds this.
    let mut script = format!(
        "table ip {table}\ndelete table ip {table}\ntable ip {table} {{\n\
         chain out {{ type nat hook postrouting priority 100; policy accept;\n\
         ip saddr {} oifname != \"{uplink}\" masquerade\n}}\n}}\n",
        network.network()
    );
    let comment = format!("comment \"{table}\"");
    for chain in foreign_chains(&table)? {
        script += &format!("insert rule {} iifname \"{uplink}\" accept {comment}\n", chain.path);
        if chain.hook == "forward" {
            let answers = "ct state established,related";
            script +=
                &format!("insert rule {} oifname \"{uplink}\" {answers} accept {comment}\n", chain.path);
        }
    }
    nft(&["-f", "-"], &script).map(drop)
}

/// Removes what [`open`] set up for this run, in the calling thread's namespace.
pub fn close(instance: &str) -> Result<(), LabError> {
    let table = table_of(instance);
    if program().is_none() {
        // Without the program nothing was set up.
        return Ok(());
    }
    let mut script = format!("table ip {table}\ndelete table ip {table}\n");
    for chain in foreign_chains(&table)? {
        for handle in handles_with_comment(&chain, &table)? {
            script += &format!("delete rule {} handle {handle}\n", chain.path);
        }
    }
    nft(&["-f", "-"], &script).map(drop)
}

/// Tries whether tables can be made, in the calling thread's namespace; for one that is thrown away.
pub fn probe() -> Result<(), LabError> {
    nft(&["-f", "-"], "table ip probe {\nchain out { type nat hook postrouting priority 100; }\n}\n")
        .map(drop)
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where it is on most systems, and not in every user's PATH.
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).map(|folder| folder.join("nft")).find(|p| p.is_file())
}

fn table_of(instance: &str) -> String {
    format!("longwire-{instance}")
}

/// A chain of another table that a packet of ours passes.
struct Chain {
    /// Family, table and name, as `nft` wants them.
    path: String,
    hook: String,
}

fn foreign_chains(own_table: &str) -> Result<Vec<Chain>, LabError> {
    Ok(chains_of(&list(&["-j", "list", "chains"])?, own_table))
}

fn chains_of(listing: &Value, own_table: &str) -> Vec<Chain> {
    let entries = listing["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    entries
        .iter()
        .filter_map(|entry| {
            let chain = &entry["chain"];
            let [family, table, name, hook, kind] =
                ["family", "table", "name", "hook", "type"].map(|field| chain[field].as_str());
            let (family, table, name, hook) = (family?, table?, name?, hook?);
            // Only such names can be written back without quoting; `nft` itself makes no others.
            let plain = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
            let ours = matches!(family, "ip" | "inet") && matches!(hook, "forward" | "input");
            (ours && kind? == "filter" && !table.starts_with("longwire-") && table != own_table)
                .then_some(())
                .filter(|()| plain(table) && plain(name))?;
            Some(Chain { path: format!("{family} {table} {name}"), hook: hook.to_owned() })
        })
        .collect()
}

fn handles_with_comment(chain: &Chain, comment: &str) -> Result<Vec<u64>, LabError> {
    let mut arguments = vec!["-j", "-a", "list", "chain"];
    arguments.extend(chain.path.split(' '));
    let listing = list(&arguments)?;
    let entries = listing["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(entries
        .iter()
        .map(|entry| &entry["rule"])
        .filter(|rule| rule["comment"] == comment)
        .filter_map(|rule| rule["handle"].as_u64())
        .collect())
}

fn list(arguments: &[&str]) -> Result<Value, LabError> {
    let output = nft(arguments, "")?;
    serde_json::from_slice(&output).map_err(|e| LabError::Program {
        program: "nft",
        purpose: "to list the machine's chains",
        output: e.to_string(),
    })
}

fn nft(arguments: &[&str], input: &str) -> Result<Vec<u8>, LabError> {
    let program = program().ok_or(LabError::MissingProgram {
        program: "nft",
        purpose: PURPOSE,
        mend: "install it with `apt install nftables` (or your system's like)",
    })?;
    run(&program, arguments, input)
}

fn run(program: &Path, arguments: &[&str], input: &str) -> Result<Vec<u8>, LabError> {
    let doing = || LabError::system("running nft");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(doing())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended early says why on its error output.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(doing())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Program { program: "nft", purpose: PURPOSE, output: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_others_filter_chains_on_the_way_are_named() {
        let listing: Value = serde_json::from_str(
            r#"{"nftables":[{"metainfo":{"version":"1.0.6"}},
            {"chain":{"family":"ip","table":"filter","name":"FORWARD","type":"filter","hook":"forward","prio":0,"policy":"drop"}},
            {"chain":{"family":"inet","table":"firewalld","name":"filter_INPUT","type":"filter","hook":"input","prio":10}},
            {"chain":{"family":"ip","table":"filter","name":"DOCKER"}},
            {"chain":{"family":"ip","table":"nat","name":"POSTROUTING","type":"nat","hook":"postrouting","prio":100}},
            {"chain":{"family":"ip","table":"filter","name":"a b","type":"filter","hook":"forward"}},
            {"chain":{"family":"ip6","table":"filter","name":"FORWARD","type":"filter","hook":"forward"}},
            {"chain":{"family":"ip","table":"longwire-other","name":"x","type":"filter","hook":"forward"}}]}"#,
        )
        .unwrap();
        let paths: Vec<_> = chains_of(&listing, "longwire-me").into_iter().map(|c| c.path).collect();
        assert_eq!(paths, ["ip filter FORWARD", "inet firewalld filter_INPUT"]);
        assert!(chains_of(&Value::Null, "x").is_empty());
    }
}
