package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// payMethod is a method's full name, as protoc's code has it.
const payMethod = "/ledger.Ledger/Pay"

// This file stands for what protoc makes of
//
//	service Ledger {
//	  rpc Pay(google.protobuf.Int64Value) returns (google.protobuf.StringValue);
//	}
type ledgerServer interface {
	Pay(ctx context.Context, cents *wrapperspb.Int64Value) (*wrapperspb.StringValue, error)
}

var ledgerService = grpc.ServiceDesc{
	ServiceName: "ledger.Ledger",
	HandlerType: (*ledgerServer)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Pay", Handler: servePay}},
}

func servePay(srv any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
	cents := &wrapperspb.Int64Value{}
	if err := decode(cents); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, req any) (any, error) {
		return srv.(ledgerServer).Pay(ctx, req.(*wrapperspb.Int64Value))
	}
	if through == nil {
		return handler(ctx, cents)
	}
	return through(ctx, cents, &grpc.UnaryServerInfo{Server: srv, FullMethod: payMethod}, handler)
}
