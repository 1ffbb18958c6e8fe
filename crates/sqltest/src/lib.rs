//! SQL tests as data: files of statements, run over the wire against any server that speaks the
//! MySQL protocol, their answers rendered as text and compared with what MariaDB answered.
//!
//! Architecture invariant: this room depends on none of the server's rooms. What it knows of a
//! server it learned through a socket.

mod binary;
pub mod client;
mod decode;
pub mod interleaving;
pub mod packet;
pub mod parameter;
mod password;
pub mod port;
pub mod render;
pub mod script;
pub mod template;
