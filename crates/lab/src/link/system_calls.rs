//! Calls of kernel interfaces that have no safe wrapper. The calls create namespaces and TUN
//! devices, configure network interfaces, and request real-time scheduling. This is the only file
//! of the crate with `unsafe`.
#![allow(unsafe_code)]

use rustix::thread::UnshareFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Moves the calling thread into new namespaces.
pub(super) fn unshare_namespaces(kinds: UnshareFlags) -> io::Result<()> {
    // SAFETY: the call is unsafe only with `CLONE_FILES`, which separates the thread's file
    // descriptors from those of other threads. The flag is removed here.
    unsafe { rustix::thread::unshare_unsafe(kinds - UnshareFlags::FILES) }.map_err(io::Error::from)
}

/// Opens a TUN device in the calling thread's namespace. Each read or write transfers one IP
/// packet.
pub(super) fn open_tun(name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = options
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    check_syscall_result(result).map(|()| file)
}

/// Brings up an interface in the calling thread's namespace.
pub(super) fn bring_up_interface(name: &str) -> io::Result<()> {
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    call_interface_ioctl(libc::SIOCSIFFLAGS, &mut request)
}

/// Sets the address of an interface in a /30 network, its MTU in bytes, and its queue length in
/// packets.
pub(super) fn configure_interface(
    name: &str,
    own: Ipv4Addr,
    mtu: u32,
    waiting: u32,
) -> io::Result<()> {
    for (call, address) in [
        (libc::SIOCSIFADDR, own),
        (libc::SIOCSIFNETMASK, Ipv4Addr::new(255, 255, 255, 252)),
    ] {
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_addr = as_sockaddr(address);
        call_interface_ioctl(call, &mut request)?;
    }
    let mut with_mtu = interface_request(name)?;
    with_mtu.ifr_ifru.ifru_mtu = mtu as libc::c_int;
    call_interface_ioctl(libc::SIOCSIFMTU, &mut with_mtu)?;
    let mut with_waiting = interface_request(name)?;
    with_waiting.ifr_ifru.ifru_ifindex = waiting as libc::c_int;
    // Ignores the error, because root in a user namespace may not set the queue length. The default
    // of 500 packets is nearly as good.
    let _ = call_interface_ioctl(libc::SIOCSIFTXQLEN, &mut with_waiting);
    Ok(())
}

/// Requests real-time priority for the calling thread. Returns whether the kernel granted the
/// priority.
pub(super) fn enable_real_time() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads one `sched_param`, which lives until the call returns. The argument 0
    // means the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) == 0 }
}

fn call_interface_ioctl(call: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // Any socket is suitable, because the kernel uses the socket only to find the namespace of the
    // interface.
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: every `call` used here accesses one `ifreq`, which lives until the call returns.
    check_syscall_result(unsafe {
        libc::ioctl(socket.as_raw_fd(), call as _, std::ptr::from_mut(request))
    })
}

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all fields of an `ifreq` are numbers or raw pointers, for which zero is a valid
    // value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn as_sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data.iter_mut().skip(2).zip(address.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: data,
    }
}

fn check_syscall_result(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
