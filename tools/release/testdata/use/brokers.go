package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/brokers/kafkaconsume"
)

func main() {
	_, err := kafkaconsume.Decode(&kgo.Record{})
	fmt.Println(err)
}
