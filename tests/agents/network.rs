//! Simulates hosts as network namespaces on one bridge. A sleeping process in each namespace keeps
//! the namespace alive.

use crate::left::wait;
use std::process::{Child, Command, Stdio};

/// The address of host 0. Host N has the address `10.9.0.(10 + N)`.
pub const HUB: &str = "10.9.0.1";
const HOSTS: usize = 4;

pub struct Network {
    hosts: Vec<Child>,
}

impl Network {
    /// Returns `None` and prints a message if namespaces or bridges cannot be created.
    pub fn new(test: &str) -> Option<Network> {
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let probe = Command::new("unshare").args(["--net", "true"]).output();
        if !probe.is_ok_and(|output| output.status.success()) {
            println!("SKIPPED {test}: no network namespaces here");
            return None;
        }
        let mut hosts = Vec::new();
        for _ in 0..HOSTS {
            let mut command = Command::new("unshare");
            command
                .args(["--net", "sleep", "600"])
                .stdout(Stdio::null());
            let host = command.spawn().unwrap();
            let namespace = format!("/proc/{}/ns/net", host.id());
            let comm = format!("/proc/{}/comm", host.id());
            wait("a namespace", || {
                std::fs::read_link(&namespace).is_ok_and(|other| other != own)
                    && std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n")
            });
            hosts.push(host);
        }
        let network = Network { hosts };
        let joined = network.join();
        if let Err(why) = &joined {
            println!("SKIPPED {test}: no bridge here: {why}");
        }
        joined.ok().map(|()| network)
    }

    fn join(&self) -> Result<(), String> {
        self.ip(0, "link set lo up")?;
        self.ip(0, "link add br0 type bridge")?;
        self.ip(0, &format!("addr add {HUB}/24 dev br0"))?;
        self.ip(0, "link set br0 up")?;
        for host in 1..HOSTS {
            let pid = self.hosts[host].id();
            self.ip(
                0,
                &format!("link add v{host} type veth peer name eth0 netns {pid}"),
            )?;
            self.ip(0, &format!("link set v{host} master br0 up"))?;
            self.ip(host, "link set lo up")?;
            self.ip(host, &format!("addr add 10.9.0.{}/24 dev eth0", 10 + host))?;
            self.ip(host, "link set eth0 up")?;
        }
        Ok(())
    }

    /// Runs `ip` on a host, for example to disconnect another host.
    pub fn ip(&self, host: usize, arguments: &str) -> Result<(), String> {
        let output = self.command(host, "ip").args(arguments.split(' ')).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "ip {arguments}: {}",
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    /// Returns a command that runs a program on a host. The child process is the program itself,
    /// not a wrapper.
    pub fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.hosts[host].id()));
        command.arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}
