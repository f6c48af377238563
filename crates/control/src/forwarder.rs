//! What can be asked of a router's programs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is asked of a router's programs, or done with them. Bytes are pairs of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ForwarderAsk {
    /// Which there are, what they have done, and what a packet may need at most.
    List {},
    /// Who is above the router, what became of the packets that went up, and where control processes come.
    Levels {},
    /// Installs a program, and answers its number.
    Install {
        /// What a scenario's `[[forwarder]]` says, but for the router.
        #[schema(value_type = Object, example = json!({"program": "syn-monitor"}))]
        forwarder: serde_json::Value,
        /// The object's bytes, unless the program comes with Longwire.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<String>,
        /// After which time it is removed unless it is renewed, such as "30 s": 1 s to 1 h. It stays without
        /// that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(example = "30 s")]
        lease: Option<String>,
    },
    /// Puts a program in the place of another, whose number, key and way it gets, with the maps that are
    /// declared alike and the state if that is as large. Answers what was kept and what is new.
    Replace {
        /// The number of the one that goes.
        fid: u32,
        /// What a scenario's `[[forwarder]]` says of a program: `program`, `function`, `constants`, `name`,
        /// `state`.
        #[schema(value_type = Object, example = json!({"program": "syn-monitor"}))]
        forwarder: serde_json::Value,
        /// The object's bytes, unless the program comes with Longwire.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<String>,
    },
    /// Lets the leases of programs begin again.
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
        /// A type of its object by whose fields the state is shown, too, such as the name of a structure.
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
    /// Takes the records out that a program has written into its rings, the oldest first.
    Events {
        /// The program's number.
        fid: u32,
        /// The ring; all of its rings without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<String>,
        /// A type of its object by whose fields records are shown, too, such as the name of a structure.
        #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    },
    /// A program's maps, or the entries of one, or one entry.
    Map {
        /// The program's number.
        fid: u32,
        /// The map.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<String>,
        /// The entry's key: digits, or its fields as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Whether entries are shown by the fields of their types, too.
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
    /// Writes entries of a program's map, in this order.
    Fill {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// Keys and values.
        #[schema(value_type = Vec<Vec<String>>)]
        entries: Vec<(String, String)>,
    },
    /// The values of keys of a program's map: null for those that are not there.
    Values {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// Removes entries of a program's map, as far as they are there.
    Prune {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// Removes an entry of a program's map, if it is there.
    Delete {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
        /// The entry's key.
        key: String,
    },
    /// Removes all entries of a program's map; of an array, whose entries stay, makes all values zero.
    Clear {
        /// The program's number.
        fid: u32,
        /// The map.
        map: String,
    },
}
