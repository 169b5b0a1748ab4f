package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"net/textproto"
	"strings"
)

// flaky starts a mail server that is busy at first, and returns its address.
func flaky() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, n)
		}
	}()
	return listener.Addr().String()
}

// serve speaks as much SMTP as one mail needs.
func serve(conn net.Conn, n int) {
	defer conn.Close()
	lines := textproto.NewReader(bufio.NewReader(conn))
	say := func(reply string) {
		if reply[0] != '2' && reply[0] != '3' {
			fmt.Println("  server:", reply)
		}
		_, _ = fmt.Fprint(conn, reply, "\r\n")
	}
	if n == 1 {
		say("421 too busy to talk")
		return
	}
	say("220 here")
	for {
		line, err := lines.ReadLine()
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); {
		case verb == "RCPT" && n == 2:
			say("450 mailbox is busy")
		case verb == "RCPT" && strings.Contains(line, "no-one"):
			say("550 no such mailbox")
		case verb == "DATA":
			say("354 go on")
			text, err := lines.ReadDotLines()
			if err != nil {
				return
			}
			fmt.Println("  server: took a mail,", text[0])
			say("250 taken")
		default:
			say("250 fine")
		}
	}
}
