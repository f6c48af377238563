//! Requests about a router's programs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request about a router's programs. Bytes are pairs of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ForwarderAsk {
    /// Lists the programs with their counters and worst-case costs.
    List {},
    /// Lists the services and control processes above the router, the outcome of their packets, and the
    /// socket for control processes.
    Levels {},
    /// Installs a program, and returns its number.
    Install {
        /// The keys of a scenario's `[[forwarder]]`, without the router.
        #[schema(value_type = Object, example = json!({"program": "syn-monitor"}))]
        forwarder: serde_json::Value,
        /// The object's bytes, unless the program is built in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<String>,
        /// Time after which it is removed unless renewed, such as "30 s": 1 s to 1 h. Default: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "30 s")]
        lease: Option<String>,
    },
    /// Replaces a program by another, which gets its number, key and route, the maps that are declared alike,
    /// and the state if the size is the same. Returns what was kept and what is new.
    Replace {
        /// The number of the old program.
        fid: u32,
        /// Keys of a scenario's `[[forwarder]]` for a program: `program`, `function`, `constants`, `name`,
        /// `state`.
        #[schema(value_type = Object, example = json!({"program": "syn-monitor"}))]
        forwarder: serde_json::Value,
        /// The object's bytes, unless the program is built in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<String>,
    },
    /// Renews the leases of programs.
    Renew {
        /// Their numbers.
        fids: Vec<u32>,
    },
    /// Removes a program.
    Remove {
        /// Its number.
        fid: u32,
    },
    /// A program's state.
    Get {
        /// Its number.
        fid: u32,
        /// A type of its object, such as the name of a structure, whose fields are shown in addition.
        #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    },
    /// Writes a program's state.
    Set {
        /// Its number.
        fid: u32,
        /// All of its bytes; with a type, as many digits as it has, or its fields as JSON.
        data: String,
        /// A type of its object.
        #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    },
    /// Takes records out of a program's rings, the oldest first.
    Events {
        /// The program's number.
        fid: u32,
        /// The ring; default: all of its rings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<String>,
        /// A type of its object, such as the name of a structure, whose fields are shown in addition.
        #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    },
    /// Lists a program's maps, or the entries of one, or one entry.
    Map {
        /// The program's number.
        fid: u32,
        /// The map.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<String>,
        /// The entry's key: digits, or its fields as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Whether entries are also shown by the fields of their types.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fields: bool,
    },
    /// Writes an entry of a program's map.
    Update {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The entry's key: digits, or its fields as JSON.
        key: String,
        /// Its value, written likewise.
        value: String,
    },
    /// Writes several entries of a program's map, in order.
    Fill {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// Keys and values.
        #[schema(value_type = Vec<Vec<String>>)]
        entries: Vec<(String, String)>,
    },
    /// Reads the values of several keys of a program's map: null for missing ones.
    Values {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// Removes several entries of a program's map; missing ones are ignored.
    Prune {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// Removes an entry of a program's map, if it exists.
    Delete {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The entry's key.
        key: String,
    },
    /// Removes all entries of a program's map; sets all values of an array to zero.
    Clear {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
    },
}
