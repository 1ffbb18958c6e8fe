//! The `gannet` binary.

fn main() {
    eprintln!("gannet: no command is built yet");
    std::process::exit(2);
}
