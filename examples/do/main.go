// Command do retries what is no HTTP: sending a mail. Three things are yours: an
// operation that stops when its context does, a word on which of its errors may go away,
// and whether it may be repeated.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forbear-go/forbear"
)

// One Retryer for each dependency, for as long as the process lives. What the classifier
// does not know is not retried, but for what failed before anything was sent, such as
// a refused connection.
var mail = forbear.Must(forbear.New("mail", forbear.Policy{
	PerAttempt: 5 * time.Second,  // of a server that says nothing more
	Total:      20 * time.Second, // attempts and waits together
	Backoff:    forbear.Backoff{Base: 200 * time.Millisecond},
}, forbear.WithClassifier(classify)))

// classify reads what a mail server says of its own replies: 4xx may go away, 5xx will
// not (RFC 5321 section 4.2.1). After both the mail was not taken, so that the next
// attempt makes no second one.
func classify(err error) (forbear.Failure, bool) {
	reply, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return forbear.Failure{}, false // the network's errors are known to forbear
	}
	class := forbear.ClassTerminal
	if reply.Code/100 == 4 {
		class = forbear.ClassTransient
	}
	return forbear.Failure{Class: class, Type: fmt.Sprintf("smtp_%d", reply.Code)}, true
}

// send is one attempt. The connection has the deadline of its context, which is the
// attempt's own: smtp knows no contexts.
func send(ctx context.Context, address, to, text string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })() // Ctrl-C, too
	c, err := smtp.NewClient(conn, "localhost")
	if err != nil {
		return err
	}
	if err := c.Mail("shop@example.com"); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return w.Close() // nil: the server has taken the mail
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	address := flaky() // flaky.go; in your program your mail server's

	for _, to := range []string{"ann@example.com", "no-one@example.com"} {
		attempts := 0
		err := mail.Do(ctx, func(ctx context.Context) error {
			attempts++
			return send(ctx, address, to, "Subject: order 17\r\n\r\nIt is on its way.\r\n")
		})
		if why, failed := errors.AsType[*forbear.Error](err); failed {
			log.Printf("%s: not sent, %v by %s: %v", to, why.Reason, why.Reason.Rule(), err)
			continue
		}
		fmt.Println(to, "has mail after", attempts, "attempts")
	}
}
