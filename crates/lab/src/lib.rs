//! Test hosts in network namespaces, and traffic between them.
//!
//! A [`Lab`] has hosts, each in its own namespace with an interface `eth0`, and a *core* namespace without
//! addresses, which holds the engine's ends of the wires. An [`ExecNet`] is a lab of two ends, for one
//! command: the near end is the command's, the far end is this machine's network.
//!
//! Everything is recorded in `/run/longwire` before it is created, so that [`sweep`] can remove exactly what
//! a killed process left. Without privileges, [`enter_user_namespace`] moves the process into namespaces in
//! which all of this works the same.
//!
//! ```no_run
//! use longwire_lab::{HostSpec, Lab};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hosts = [HostSpec::new("a", "10.0.0.1/24".parse()?), HostSpec::new("b", "10.0.0.2/24".parse()?)];
//! let lab = Lab::create("tour", &hosts)?;
//! // An engine would now forward between the two ends that lie in the core:
//! let [a, b] = [0, 1].map(|i| lab.hosts()[i].port());
//! lab.in_core(|| println!("opening sockets on {a:?} and {b:?}"))?;
//! let status = lab.host("a")?.command("ping")?.args(["-c", "1", "b"]).status()?;
//! lab.down()?;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_op_in_unsafe_fn)]

mod abilities;
mod address;
mod attachment;
mod attend;
mod bind_guard;
mod bpf;
mod descriptor;
mod directory;
mod diversion;
mod error;
mod exec_net;
mod firewall;
mod found_namespace;
mod free_network;
mod host;
mod lab;
mod listening;
mod localhost;
mod machine;
mod names;
mod namespace;
mod nftables;
mod offload;
mod open_files;
mod outside;
mod port_map;
mod port_relay;
mod privileges;
mod process_namespaces;
mod processes;
mod quiet;
mod redirection;
mod relay;
mod resolver;
mod service;
mod socket_option;
pub mod splicing;
mod state;
mod stoppable_thread;
mod system_call;
pub mod traffic;
mod unanswered;
mod user;
mod user_namespace;
mod user_network;

use error::Result;

pub use abilities::{Abilities, Ability, abilities, may_change_user, may_make_hosts, taps};
pub use address::Route;
pub use attachment::{Attachment, Interface};
pub use attend::{Attendant, exit_code};
pub use bind_guard::{BindGuard, FarIpv6, GuardedCommand};
pub use diversion::Diversion;
pub use error::LabError;
pub use exec_net::{ExecNet, ExecSpec, FAR, FAR_ADDRESS, FAR_IPV6_ADDRESS, FarEnd, NEAR};
pub use found_namespace::{FindError, FoundNamespace, NamespaceSelector};
pub use free_network::way_out_mtu;
pub use host::{Host, HostSpec, KernelTraffic, Wiring};
pub use lab::{Lab, LabInfo, sweep};
pub use localhost::{Localhost, LoopbackServices, Ports, PublishedPorts};
pub use longwire_document::address::{Mac, Network};
pub use machine::can_forward;
pub use namespace::{Namespace, NamespaceId, path_of};
pub use open_files::{allow_open_files, allow_open_files_if_possible, restore_open_files};
pub use outside::OutsideSockets;
pub use port_relay::{PortRelay, SocketNetwork};
pub use privileges::{CommandRole, keep_for};
pub use processes::{detach, has_reader};
pub use service::Service;
pub use stoppable_thread::StoppableThread;
pub use user::User;
pub use user_namespace::{OwnUser, enter_user_namespace, join_user_namespace, private_labs};
pub use user_network::UserNetwork;
